/**
 * A batch of images as one WebP, moving where there are several. Frames are encoded as still pictures of what changed, several at a
 * time on all cores. The library's own encoder of animations takes one frame after the other, and converts a lossy frame to half the
 * colour resolution, back, and to half again, which shows.
 */
import { availableParallelism } from 'node:os'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { createSemaphore } from '../../lib/waiting/semaphore.ts'
import { toBytes } from '../tensor/bytes.ts'
import { inBlocks } from '../tensor/map-pixels.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { changedPart, cutChanges, cutPart, type Part } from './changed-part.ts'
import { assembleWebp, MAX_FRAME_MS, type WebpFrame } from './webp-animation.ts'

export interface WebpSettings {
  readonly lossless: boolean
  readonly quality: number
  readonly effort: number
  /** How long every image of the batch is shown. */
  readonly frameMs: number
}

/** A frame before it is encoded. */
interface Shot {
  /** Which image of the batch. */
  readonly index: number
  readonly part: Part
  ms: number
}

export async function encodeWebp(view: ImageView, settings: WebpSettings, checkpoint: () => void): Promise<Uint8Array> {
  const pixels = new Uint8Array(view.data.length)
  inBlocks(pixels.length, checkpoint, (from, to) => toBytes(view.data, pixels, { from, to: from, count: to - from }))
  const images = cutImages(pixels, view)
  const shots = planShots(images, view, { frameMs: settings.frameMs, checkpoint })
  const atOnce = createSemaphore(availableParallelism())
  const encoding = await Promise.allSettled(
    shots.map((shot) =>
      atOnce.run(async () => {
        checkpoint()
        return encodeShot(shot, images, view, settings)
      }),
    ),
  )
  checkpoint()
  const frames = encoding.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason
    return outcome.value
  })
  const hasAlpha = view.channels === 4 || frames.some(({ isBlended }) => isBlended)
  return assembleWebp(frames, { width: view.width, height: view.height, hasAlpha })
}

function cutImages(pixels: Uint8Array, { batch, width, height, channels }: ImageView): Uint8Array[] {
  const length = width * height * channels
  return Array.from({ length: batch }, (_, index) => pixels.subarray(index * length, (index + 1) * length))
}

/** An image that equals the one before it is no frame of its own: that one is shown for longer. */
function planShots(
  images: readonly Uint8Array[],
  view: ImageView,
  { frameMs, checkpoint }: { readonly frameMs: number; checkpoint(): void },
): Shot[] {
  const shots: Shot[] = [{ index: 0, part: { left: 0, top: 0, width: view.width, height: view.height }, ms: frameMs }]
  for (let index = 1; index < images.length; index++) {
    checkpoint()
    const part = changedPart(images[index - 1], images[index], view)
    const latest = shots[shots.length - 1]
    if (part === null && latest.ms + frameMs <= MAX_FRAME_MS) latest.ms += frameMs
    else shots.push({ index, part: part ?? { left: 0, top: 0, width: 1, height: 1 }, ms: frameMs })
  }
  return shots
}

async function encodeShot(
  { index, part, ms }: Shot,
  images: readonly Uint8Array[],
  view: ImageView,
  { lossless, quality, effort }: WebpSettings,
): Promise<WebpFrame> {
  // Where pixels are kept exactly, those that did not change compress best when they are left out.
  const changes =
    lossless && index > 0 && view.channels === 3 ? cutChanges(images[index - 1], images[index], part, view) : null
  const channels = changes === null ? (view.channels as 3 | 4) : 4
  const raw = { width: part.width, height: part.height, channels }
  const still = await loadSharp()(changes ?? cutPart(images[index], part, view), { raw, limitInputPixels: false })
    .webp({ lossless, quality, effort })
    .toBuffer()
  return { still, part, ms, isBlended: changes !== null }
}
