"""How throughput grows with the number of processes or CPUs: laws, fitted by least squares, with a bootstrap."""
