"""The formats of recorded runs: each module declares one, in the folder of its family if it has one."""
