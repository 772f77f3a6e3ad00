"""Files that run where the tested code runs: there they import nothing of gistpoint but what lies beside them."""
