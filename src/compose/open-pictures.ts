/** Work on pictures outside of workflows. */
import { openPictures as openSharpPictures } from '../adapters/pictures/sharp.ts'
import type { Pictures } from '../domain/assets/pictures.ts'

// 16384 by 4096, or 8192 by 8192: as much as the hosted service takes.
const MAX_PIXELS = 67_108_864

export function openPictures(): Pictures {
  return openSharpPictures({ maxPixels: MAX_PIXELS })
}
