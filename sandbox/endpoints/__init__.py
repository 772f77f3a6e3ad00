"""Chat models behind an endpoint, local or remote: the only part of gistpoint that sends text to one."""
