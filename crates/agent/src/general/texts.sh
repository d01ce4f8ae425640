#!/bin/busybox sh
# A shell session to train with: texts and archives. Ends with the first failure.
set -e
umask 022

# A project.
mkdir -p project/src/lib project/doc project/empty
i=0
while [ $i -lt 6 ]; do
    {
        echo "/* part $i */"
        number=0
        while [ $number -lt 30 ]; do
            echo "int value_$number = $((number * i));"
            number=$((number + 1))
        done
    } > project/src/part$i.c
    i=$((i + 1))
done
for name in alpha beta; do
    printf '%s\n' "# $name" "see $name.c" > project/doc/$name.md
    cp project/src/part1.c project/src/lib/$name.c
done

# Looking around.
ls -lR project > listing
ls -la project/src | tail -n +2 | sort -k 5 -n | head -n 3
find project -name '*.c' -size +0 | sort > sources
find project -type d -empty
stat -c '%n %s %a' project/src/*.c > sizes
du -s project
df . > space || true
wc -l project/src/*.c | tail -n 1
test -d project/doc && test ! -e project/missing && test -x /bin/busybox

# Searching and changing texts.
grep -rn 'value_4' project | cut -d : -f 1 | uniq -c | sort -rn > found
sed -i 's/int/long/' project/src/part3.c project/src/lib/beta.c
awk '{ count[$1] += 1 } END { for (word in count) print word, count[word] }' project/src/part*.c > words
tr a-z A-Z < words | sort | uniq | tee upper | wc -c
seq 1 40 | paste - upper | head -n 2
diff project/src/part1.c project/src/lib/beta.c > change || true
cmp project/src/part1.c project/src/lib/alpha.c
xargs cat < sources | md5sum > sum
sha1sum -c << TEXT
$(sha1sum project/doc/alpha.md)
TEXT
od -c project/doc/beta.md | head -n 1
expr 6 \* 7

# Archives and pipes.
tar -cf project.tar project
mkdir copy
tar -xf project.tar -C copy
gzip -c project.tar > project.tar.gz
gunzip -c project.tar.gz | cmp - project.tar
(cd project && find . -depth | cpio -o -H newc) > project.cpio
(cd copy && cpio -t) < project.cpio | wc -l
dd if=project.tar of=part.bin bs=4k count=10 conv=fsync
head -c 3000 project.tar | base64 > letters

# Away with all.
rm -rf project project.* copy
exit 0
