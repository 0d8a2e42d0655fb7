/** Pictures that a custom node shows while it runs: tensors become small JPEGs, and of a flood only some are sent. */
import { toBytes } from '../tensor/bytes.ts'
import type { EncodedPicture, Tensor } from './nodes-api.ts'

interface PreviewLine {
  show(picture: Tensor | EncodedPicture): void
  /** Resolves when the last picture is out. */
  drained(): Promise<void>
}

// More often than anybody looks, and than ordinary nodes show: a node that shows ten a second loses none to jitter.
const EVERY_MS = 25
// As ComfyUI has it.
const JPEG_QUALITY = 95
const LONGEST_SIDE = 512
const MAX_BYTES = 4_194_304
const CONTENT_TYPES: ReadonlySet<unknown> = new Set(['image/png', 'image/jpeg', 'image/webp'])

/** The first image of a batch, every n-th pixel, as RGB bytes. */
function shrink({ shape, data }: Tensor): { width: number; height: number; pixels: Uint8Array } {
  const [, height, width, channels] = shape
  if (shape.length !== 4 || channels < 3 || height < 1 || width < 1 || shape[0] < 1) {
    throw new TypeError('preview: expected an image [batch, height, width, 3]')
  }
  const step = Math.ceil(Math.max(width, height) / LONGEST_SIDE)
  const [columns, rows] = [Math.ceil(width / step), Math.ceil(height / step)]
  const pixels = new Uint8Array(columns * rows * 3)
  let to = 0
  for (let y = 0; y < height; y += step) {
    for (let x = 0; x < width; x += step, to += 3) {
      toBytes(data, pixels, { from: (y * width + x) * channels, to, count: 3 })
    }
  }
  return { width: columns, height: rows, pixels }
}

async function toJpeg({ width, height, pixels }: ReturnType<typeof shrink>): Promise<EncodedPicture> {
  // Loaded with the first preview: most nodes show none.
  const { default: sharp } = await import('sharp')
  const bytes = await sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: JPEG_QUALITY })
    .toBuffer()
  return { contentType: 'image/jpeg', bytes: new Uint8Array(bytes) }
}

function checked({ contentType, bytes }: EncodedPicture): EncodedPicture {
  if (!CONTENT_TYPES.has(contentType) || !(bytes instanceof Uint8Array) || bytes.byteLength > MAX_BYTES) {
    throw new TypeError('preview: expected a tensor, or a PNG, JPEG or WebP of at most 4 MiB')
  }
  return { contentType, bytes: new Uint8Array(bytes) }
}

export function createPreviewLine(send: (picture: EncodedPicture) => void): PreviewLine {
  let shownAt = Number.NEGATIVE_INFINITY
  let pending: Promise<void> | null = null
  /** The newest picture that has yet to be encoded. */
  let waiting: ReturnType<typeof shrink> | null = null

  async function encodeWaiting(): Promise<void> {
    for (let next = waiting; next !== null; next = waiting) {
      waiting = null
      // A picture that cannot be encoded is only not shown.
      await toJpeg(next).then(send, () => {})
    }
  }

  return {
    show(picture) {
      if (performance.now() - shownAt < EVERY_MS) return
      shownAt = performance.now()
      if ('bytes' in picture) {
        send(checked(picture))
        return
      }
      waiting = shrink(picture)
      pending ??= encodeWaiting().finally(() => {
        pending = null
      })
    },
    drained: async () => pending ?? undefined,
  }
}
