/**
 * Pictures through sharp. Uploads are untrusted, so the number of pixels is checked before decoding, few pictures are decoded at
 * a time, and messages of the decoder never reach a caller.
 */
import type { Sharp } from 'sharp'
import { loadSharp } from '../../../lib/files/load-sharp.ts'
import { PNG_SIGNATURE, readChunks } from '../../../lib/files/png-chunks.ts'
import { createSemaphore } from '../../../lib/waiting/semaphore.ts'
import type { Picture, PictureFormat, Pictures, SizedPicture } from '../../domain/assets/pictures.ts'
import { ServiceError } from '../../domain/errors.ts'

interface PicturesOptions {
  readonly maxPixels: number
}

// Decoded pictures are large, and more at a time would not be faster on a machine of few cores.
const AT_A_TIME = 2

export function openPictures({ maxPixels }: PicturesOptions): Pictures {
  const limit = createSemaphore(AT_A_TIME)
  const read = (bytes: Uint8Array): Sharp =>
    loadSharp()(bytes, { limitInputPixels: maxPixels, failOn: 'error', pages: 1 })
  const decoding = <Result>(work: () => Promise<Result>): Promise<Result> =>
    limit.run(async () => {
      try {
        return await work()
      } catch (cause) {
        if (cause instanceof ServiceError) throw cause
        throw new ServiceError('invalid_field', `this is not a picture of at most ${maxPixels} pixels`, {
          details: { field: 'image' },
          cause,
        })
      }
    })
  return {
    preview: (source, { format, quality, fitPixels }) =>
      decoding(async () => {
        const whole = read(source)
        const picture =
          fitPixels === undefined
            ? whole
            : whole.resize(fitPixels, fitPixels, { fit: 'inside', withoutEnlargement: true })
        // A JPEG has no alpha: it is dropped, not blended.
        const coded = format === 'jpeg' ? picture.removeAlpha().jpeg({ quality }) : picture.webp({ quality })
        return { bytes: await coded.toBuffer(), contentType: `image/${format}` }
      }),
    channel: (source, channel) =>
      decoding(async () =>
        channel === 'rgb' ? toPng(read(source).toColourspace('srgb').removeAlpha()) : toAlpha(read(source)),
      ),
    replaceAlpha: (original, mask) => decoding(() => replaceAlpha(read, original, mask)),
    convert: (source, wanted) => decoding(() => convert(read(source), source, wanted)),
    toMask: (source) => decoding(async () => ((await read(source).metadata()).hasAlpha ? toMask(read(source)) : null)),
  }
}

async function toPng(picture: Sharp): Promise<Picture> {
  return { bytes: await picture.png().toBuffer(), contentType: 'image/png' }
}

/** Black everywhere, with the picture's own alpha: opaque when it has none. */
async function toAlpha(picture: Sharp): Promise<Picture> {
  const { data, info } = await readRgba(picture)
  for (let at = 0; at < data.length; at += 4) data.fill(0, at, at + 3)
  return toPng(fromRgba(data, info))
}

async function replaceAlpha(
  read: (bytes: Uint8Array) => Sharp,
  original: Uint8Array,
  mask: Uint8Array,
): Promise<Picture> {
  const base = await readRgba(read(original))
  const alpha = await readRgba(read(mask))
  if (base.info.width !== alpha.info.width || base.info.height !== alpha.info.height) {
    throw new ServiceError(
      'invalid_field',
      `the mask has ${alpha.info.width}x${alpha.info.height} pixels and the original ${base.info.width}x${base.info.height}; they must be equal`,
      { details: { field: 'image' } },
    )
  }
  for (let at = 3; at < base.data.length; at += 4) base.data[at] = alpha.data[at]
  const { bytes, contentType } = await toPng(fromRgba(base.data, base.info))
  return { bytes: copyTexts(original, bytes), contentType }
}

async function convert(
  picture: Sharp,
  source: Uint8Array,
  { format, quality }: { readonly format: PictureFormat | null; readonly quality: number | null },
): Promise<SizedPicture> {
  const { format: own, width, height } = await picture.metadata()
  if (format === null || (format === own && (quality === null || format === 'png')))
    return { bytes: source, contentType: `image/${own}`, width, height }
  const options = quality === null ? {} : { quality: Math.max(1, quality) }
  const coded =
    format === 'png'
      ? picture.png()
      : format === 'webp'
        ? picture.webp(options)
        : picture.flatten({ background: '#ffffff' }).jpeg(options)
  return { bytes: await coded.toBuffer(), contentType: `image/${format}`, width, height }
}

async function toMask(picture: Sharp): Promise<Picture> {
  const { data, info } = await readRgba(picture)
  for (let at = 0; at < data.length; at += 4) data.fill(255 - data[at + 3], at, at + 3)
  return toPng(fromRgba(data, info))
}

interface Size {
  readonly width: number
  readonly height: number
}

async function readRgba(picture: Sharp): Promise<{ data: Buffer; info: Size }> {
  return picture.toColourspace('srgb').ensureAlpha().raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true })
}

function fromRgba(data: Buffer, { width, height }: Size): Sharp {
  return loadSharp()(data, { raw: { width, height, channels: 4 } })
}

const TEXT_TYPES: ReadonlySet<string> = new Set(['tEXt', 'zTXt', 'iTXt'])

/**
 * Copies the text chunks of one PNG into another, so that the graph in a picture is kept when a mask is drawn on it. Returns
 * `to` unchanged when `from` is no PNG or has no text.
 */
function copyTexts(from: Uint8Array, to: Uint8Array): Uint8Array {
  const texts = readChunks(from).filter(({ type }) => TEXT_TYPES.has(type))
  const [header] = readChunks(to)
  if (texts.length === 0 || header === undefined) return to
  const afterHeader = PNG_SIGNATURE.length + header.whole.byteLength
  return Buffer.concat([to.subarray(0, afterHeader), ...texts.map(({ whole }) => whole), to.subarray(afterHeader)])
}
