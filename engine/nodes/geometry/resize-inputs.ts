/** What the classic resizing nodes ask for, of images and of latents alike: a method, and a size or a factor. */
import { choice, float, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { CROP_METHODS } from '../../tensor/resize/upscale.ts'

/** A width and a height, of which 0 leaves one open. */
export function sizeInputs<const Method extends string>(methods: readonly Method[], step: number) {
  const side = int({ default: 512, min: 0, max: MAX_RESOLUTION, step })
  return { upscale_method: choice(methods), width: side, height: side, crop: choice(CROP_METHODS) }
}

export function factorInputs<const Method extends string>(methods: readonly Method[], fallback: number) {
  return {
    upscale_method: choice(methods),
    scale_by: float({ default: fallback, min: 0.01, max: 8, step: 0.01 }),
  }
}
