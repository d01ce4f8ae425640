"""The fleet: builds and boots of a run on other hosts. PostgreSQL decides, Dask carries, files go by digest."""
