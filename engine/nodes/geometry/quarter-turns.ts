/** The choices of the nodes that rotate images and latents. */
import type { QuarterTurns } from '../../tensor/rotate-and-mirror.ts'

export const ROTATIONS = ['none', '90 degrees', '180 degrees', '270 degrees'] as const
export const QUARTER_TURNS: Readonly<Record<(typeof ROTATIONS)[number], QuarterTurns | 0>> = {
  none: 0,
  '90 degrees': 1,
  '180 degrees': 2,
  '270 degrees': 3,
}
