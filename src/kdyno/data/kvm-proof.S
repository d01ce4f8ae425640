# A ROM that goes from the reset vector through real and protected mode into long mode with paging on, and then
# says so by writing 0x2a to QEMU's isa-debug-exit device, which ends QEMU with exit status 0x2a * 2 + 1 = 85.
# machine/kvm.py carries it assembled; a test assembles this file and compares.
        .code16
start:  cli
        cld
        xorw    %ax, %ax
        movw    %ax, %ds
        movw    %ax, %es
        movw    $0x1000, %di
        movw    $0x1800, %cx
        rep stosw
        movw    $0x2003, 0x1000
        movw    $0x3003, 0x2000
        movw    $0x0083, 0x3000
        lgdtl   %cs:(gdtr - start)
        movl    $0x20, %eax
        movl    %eax, %cr4
        movl    $0x1000, %eax
        movl    %eax, %cr3
        movl    $0xc0000080, %ecx
        rdmsr
        orl     $0x100, %eax
        wrmsr
        movl    %cr0, %eax
        orl     $0x80000001, %eax
        movl    %eax, %cr0
        ljmpl   $8, $(0xf0000 + long_mode - start)
        .code64
long_mode:
        movb    $0x2a, %al
        outb    %al, $0xf4
1:      hlt
        jmp     1b
        .balign 8
gdt:    .quad   0
        .quad   0x00af9a000000ffff
gdtr:   .word   gdtr - gdt - 1
        .long   0xf0000 + gdt - start
        .org    0xfff0
        .code16
        ljmpw   $0xf000, $0
        .org    0x10000
