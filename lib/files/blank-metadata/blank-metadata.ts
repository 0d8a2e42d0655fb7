/**
 * What a media file carries beside its content, blanked in place: generators write the whole workflow there. What is kept is listed, not
 * what is hidden, so that a place nobody thought of hides nothing. The length stays, so parts of a file can be asked for as before. Whether a
 * file is of a known kind, its first bytes say.
 */
import { blankGlb, blankMatroska, blankMp4 } from './containers.ts'
import { PartReader, type Patch, type ReadPart, TooManyPartsError } from './patches.ts'
import { blankGif, blankJpeg, blankPng, blankWebp } from './pictures.ts'
import { blankFlac, blankMp3, blankOgg, blankWav } from './sounds.ts'

type Blank = (reader: PartReader) => Promise<Patch[] | null>

const SNIFFED_BYTES = 16
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
// They keep what they are in a box that would be blanked.
const STILL_BRANDS = ['avif', 'avis', 'heic', 'heix', 'mif1', 'msf1', 'jxl ']

/** In their order. null: what the file hides, nobody here can tell. */
export async function findMetadata(size: number, read: ReadPart): Promise<readonly Patch[] | null> {
  const reader = new PartReader(size, read)
  const blank = blankOf(await reader.read(0, SNIFFED_BYTES))
  if (blank === null) return null
  try {
    const patches = await blank(reader)
    return patches?.filter(({ length }) => length > 0) ?? null
  } catch (error) {
    if (error instanceof TooManyPartsError) return null
    throw error
  }
}

function blankOf(head: Buffer): Blank | null {
  const has = (text: string, at: number) => head.toString('latin1', at, at + text.length) === text
  if (head.subarray(0, PNG.length).equals(PNG)) return blankPng
  if (has('RIFF', 0)) return has('WEBP', 8) ? blankWebp : has('WAVE', 8) ? blankWav : null
  if (head[0] === 0xff && head[1] === 0xd8) return blankJpeg
  if (has('GIF8', 0)) return blankGif
  if (has('ftyp', 4)) return STILL_BRANDS.some((brand) => has(brand, 8)) ? null : blankMp4
  if (has('\x1a\x45\xdf\xa3', 0)) return blankMatroska
  if (has('glTF', 0)) return blankGlb
  if (has('fLaC', 0)) return blankFlac
  if (has('OggS', 0)) return blankOgg
  const isSound = has('ID3', 0) || (head[0] === 0xff && (head[1] & 0xe0) === 0xe0)
  return isSound ? blankMp3 : null
}
