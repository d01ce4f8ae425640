"""Why a benchmark differs between two kernels: two PMU records, compared region by region."""
