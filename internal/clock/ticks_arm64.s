#include "textflag.h"

// func readTicks() uint64
TEXT ·readTicks(SB), NOSPLIT, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func readTicksInOrder() uint64
TEXT ·readTicksInOrder(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
