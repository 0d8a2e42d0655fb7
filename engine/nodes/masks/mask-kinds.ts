/** Numbers that mask nodes declare alike. */
import { int } from '../../node/input-kinds.ts'

const MAX_SIDE = 16384

export const side = () => int({ default: 512, min: 1, max: MAX_SIDE, step: 1 })
export const offset = () => int({ default: 0, min: 0, max: MAX_SIDE, step: 1 })
