#!/bin/sh
# Merge fragments into OUTPUT/.config; the last value of a symbol wins. Only what kdyno uses: -m -O DIR base fragments...
set -e
output=.
while :; do
	case $1 in
	-m) shift ;;
	-O) output=$2; shift 2 ;;
	*) break ;;
	esac
done
merged=$(mktemp ./.merged.XXXXXX)
for file in "$@"; do
	echo "Merging $file"
	cat "$file" >> "$merged"
	echo >> "$merged"
done
mv "$merged" "$output/.config"
