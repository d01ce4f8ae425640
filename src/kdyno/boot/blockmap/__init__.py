"""The place of a file on its disk, as a device-mapper table: a disk without the loop driver."""
