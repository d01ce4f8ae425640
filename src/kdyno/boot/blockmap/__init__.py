"""Where a file lies on its disk, as a device-mapper table: a disk without the loop driver."""
