unsigned int crc32(unsigned int seed)
{
	int bit;

	for (bit = 0; bit < 8; bit++)
		seed = seed >> 1 ^ (seed & 1 ? 0xedb88320u : 0);
	return seed;
}
