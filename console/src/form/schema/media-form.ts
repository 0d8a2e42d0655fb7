/** Whether a text of a schema stands for a picture, a video or a sound, and how its bytes are written. Pure. */
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'

export interface MediaForm {
  readonly kind: 'image' | 'video' | 'audio'
  /** As a data URI, or as base64 alone. */
  readonly isBare: boolean
}

const NAMES = {
  image: /(^|_)(image|images|img|picture|photo|mask|frame|background|avatar)(_|\d|$)/i,
  video: /(^|_)video(s)?(_|\d|$)/i,
  audio: /(^|_)(audio|sound|voice_sample)(_|\d|$)/i,
} as const
const ADDRESS_NAME = /^(url|uri|data|b64_json|base64)$/i
const NO_FILE = /(^|_)(id|ids|mode|size|format|count|quality|type|strength|weight|model|name|generation|config)$/i
const BYTES = /base64|data[ :-]?ur[il]/i

export function toMediaForm(schema: JsonObject, name: string, within: string): MediaForm | null {
  const { format, contentMediaType, contentEncoding, description } = schema
  const about = typeof description === 'string' ? description : ''
  const told = [contentMediaType, format].find((word) => typeof word === 'string') as string | undefined
  const takesBytes = contentEncoding === 'base64' || ['binary', 'byte', 'data-url', 'data-uri'].includes(told ?? '')
  const isBare =
    (contentEncoding === 'base64' || told === 'byte' || /base64/i.test(about)) && !/data[ :-]?ur[il]/i.test(about)
  const kind =
    kindIn(contentMediaType) ?? kindIn(name) ?? (ADDRESS_NAME.test(name) || name === '' ? kindIn(within) : null)
  if (takesBytes) return { kind: kind ?? 'image', isBare }
  if (kind === null) return null
  if (typeof contentMediaType === 'string' || BYTES.test(about)) return { kind, isBare }
  // An address that the provider itself fetches cannot be a file of this machine.
  if (NO_FILE.test(name) || /^an (https )?address\.?$/i.test(about)) return null
  return { kind, isBare: false }
}

function kindIn(word: unknown): MediaForm['kind'] | null {
  if (typeof word !== 'string') return null
  const spaced = word.replaceAll(/([a-z])([A-Z])/g, '$1_$2').replaceAll(/[/-]/g, '_')
  return (['image', 'video', 'audio'] as const).find((kind) => NAMES[kind].test(spaced)) ?? null
}

/** A data URI in the way the field wants it. */
export function writeMedia(dataUri: string, { isBare }: MediaForm): string {
  return isBare ? dataUri.slice(dataUri.indexOf(',') + 1) : dataUri
}

/** How many bytes a long text of base64 stands for; null: it is an address, or nothing. */
export function bytesOf(text: string): number | null {
  const data = text.startsWith('data:') ? text.slice(text.indexOf(',') + 1) : text
  if (!text.startsWith('data:') && (text.length < 200 || !/^[A-Za-z0-9+/=]+$/.test(text.slice(0, 200)))) return null
  return Math.floor((data.length * 3) / 4)
}
