"""Jobs on a Dask cluster: what is sent and done there, and what is believed of it here."""
