//go:build amd64 && !purego

#include "textflag.h"

// A line of a tile is one ZMM register of float32. Sums are float64, lanes 0-7 in Z4 and
// 8-15 in Z5; products of float32 are exact in float64, so that fused additions give
// the bits of separate ones.

// func product512(p, h *[Lanes]float32, n int, sum *[Lanes]float64)
TEXT ·product512(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ h+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ sum+24(FP), DX
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VADDPS (DI), Z0, Z1
	VMOVUPS Z1, (DI)
	VCVTPS2PD Y0, Z2
	VEXTRACTF64X4 $1, Z0, Y6
	VCVTPS2PD Y6, Z3
	VCVTPS2PD Y1, Z7
	VEXTRACTF64X4 $1, Z1, Y8
	VCVTPS2PD Y8, Z9
	VFMADD231PD Z2, Z7, Z4
	VFMADD231PD Z3, Z9, Z5
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VZEROUPPER
	RET

// func advance512(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64)
TEXT ·advance512(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), SI
	MOVQ h+8(FP), DI
	MOVQ r+16(FP), R8
	MOVQ d+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ alpha+40(FP), AX
	MOVQ sum+48(FP), DX
	VMOVUPS (AX), Z10
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	TESTQ CX, CX
	JZ done

loop:
	VMULPS (SI), Z10, Z0
	VADDPS (R9), Z0, Z0
	VMOVUPS Z0, (R9)
	VMULPS (DI), Z10, Z1
	VMOVUPS (R8), Z2
	VSUBPS Z1, Z2, Z2
	VMOVUPS Z2, (R8)
	VCVTPS2PD Y2, Z3
	VEXTRACTF64X4 $1, Z2, Y6
	VCVTPS2PD Y6, Z7
	VFMADD231PD Z3, Z3, Z4
	VFMADD231PD Z7, Z7, Z5
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VZEROUPPER
	RET

// func turn512(p, r *[Lanes]float32, n int, beta *[Lanes]float32)
TEXT ·turn512(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ r+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ beta+24(FP), AX
	VMOVUPS (AX), Z10
	TESTQ CX, CX
	JZ done

loop:
	VMULPS (SI), Z10, Z0
	VADDPS (DI), Z0, Z0
	VMOVUPS Z0, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VZEROUPPER
	RET

// func times512(m, c *[Lanes]float32, n int)
TEXT ·times512(SB), NOSPLIT, $0-24
	MOVQ m+0(FP), SI
	MOVQ c+8(FP), DI
	MOVQ n+16(FP), CX
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VMULPS (DI), Z0, Z0
	VMOVUPS Z0, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VZEROUPPER
	RET

// func difference512(a, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)
TEXT ·difference512(SB), NOSPLIT, $0-48
	MOVQ a+0(FP), SI
	MOVQ v+8(FP), DI
	MOVQ r+16(FP), R8
	MOVQ n+24(FP), CX
	MOVQ norm+32(FP), DX
	MOVQ size+40(FP), R10
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	VXORPD Z11, Z11, Z11
	VXORPD Z12, Z12, Z12
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VSUBPS (DI), Z0, Z1
	VMOVUPS Z1, (R8)
	VCVTPS2PD Y1, Z2
	VEXTRACTF64X4 $1, Z1, Y6
	VCVTPS2PD Y6, Z3
	VFMADD231PD Z2, Z2, Z4
	VFMADD231PD Z3, Z3, Z5
	VCVTPS2PD Y0, Z7
	VEXTRACTF64X4 $1, Z0, Y8
	VCVTPS2PD Y8, Z9
	VFMADD231PD Z7, Z7, Z11
	VFMADD231PD Z9, Z9, Z12
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VMOVUPD Z11, (R10)
	VMOVUPD Z12, 64(R10)
	VZEROUPPER
	RET
