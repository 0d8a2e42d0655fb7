/**
 * What a node reported, as an output of the job: its name, its kind and where its bytes come from. Nothing is dropped:
 * a plain string, number or JSON value under any key becomes a small text or JSON file. Only two things are not outputs:
 * the `animated` flags beside an image, and temporary preview files unless the operator wants them: those are kept for
 * whoever asks for them by name, and not listed.
 */
import type { ReportedFile } from '../../../../engine/graph/run-event.ts'
import { isMediaType, toBareType, typeFromName } from '../../../../lib/files/mime.ts'
import type { OutputLocation, OutputType } from '../job.ts'
import type { Reported } from '../run/apply-engine-event.ts'
import { toJsonText } from '../run/record/run-record.ts'

/** A report that has yet to be stored. */
export interface OutputDraft {
  readonly nodeId: string
  readonly name: string
  readonly type: OutputType
  readonly contentType: string
  /** Absent for what was no file. */
  readonly location?: OutputLocation
  /** How much memory it occupies until it is stored. */
  readonly heldBytes: number
  read(): AsyncIterable<Uint8Array>
  /** It will not be read again. */
  release?(): void
}

export interface OutputRules {
  /** Files of the `temp` folder count as outputs too. */
  readonly previewOutputs: boolean
}

const NAME_MAX_LENGTH = 255
const NAME_PART_MAX_LENGTH = 64
const TEXT_SLICE_LENGTH = 262_144
const OCTETS = 'application/octet-stream'
// Under these keys everything is of one type. `images` is not among them: videos arrive there as well.
const TYPE_OF_KEY: Readonly<Record<string, OutputType>> = {
  gifs: 'video',
  audio: 'audio',
  latents: 'latent',
  files: 'file',
}

/** null when the item is not an output. */
export function toOutputDraft(reported: Reported, rules: OutputRules): OutputDraft | null {
  const { item, key, nodeId } = reported
  if (item.kind === 'file') return toFileDraft(reported, item, rules)
  if (key === 'animated' && typeof item.value === 'boolean') return null
  const isText = typeof item.value === 'string'
  const text = isText ? (item.value as string) : toJsonText(item.value)
  return {
    nodeId,
    name: `${toPlainName(reported)}.${isText ? 'txt' : 'json'}`,
    type: 'text',
    contentType: isText ? 'text/plain' : 'application/json',
    heldBytes: 2 * text.length,
    read: () => encode(text),
  }
}

/** In slices: a text may have hundreds of megabytes, and encoding one blocks the thread. */
async function* encode(text: string): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + TEXT_SLICE_LENGTH, text.length)
    // Half a character cannot be encoded.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++
    yield Buffer.from(text.slice(start, end))
    start = end
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function toFileDraft(reported: Reported, file: ReportedFile, { previewOutputs }: OutputRules): OutputDraft {
  const name = toBaseName(file.filename) ?? toPlainName(reported)
  const contentType =
    file.contentType !== null && isMediaType(file.contentType) ? file.contentType : (typeFromName(name) ?? OCTETS)
  return {
    nodeId: reported.nodeId,
    name,
    type: TYPE_OF_KEY[reported.key] ?? typeOfContent(reported.key, toBareType(contentType)),
    contentType,
    location: {
      folder: file.folder,
      subfolder: toSubfolder(file.subfolder),
      isUnlisted: file.folder === 'temp' && !previewOutputs,
    },
    heldBytes: file.heldBytes ?? 0,
    read: () => file.read(),
    release: () => file.release?.(),
  }
}

/** Compared with what a caller asks for, never used as a path. */
function toSubfolder(subfolder: string): string {
  return subfolder.replaceAll('\\', '/').slice(0, NAME_MAX_LENGTH).toWellFormed()
}

function typeOfContent(key: string, bareType: string): OutputType {
  const [family] = bareType.split('/', 1)
  if (family === 'image' || family === 'video' || family === 'audio') return family
  if (key === 'images') return 'image'
  if (family === 'text' || key === 'text') return 'text'
  return bareType === 'application/x-latent' ? 'latent' : 'file'
}

/** An engine may report a full path, in either style; only its last part may travel on. */
function toBaseName(filename: string): string | null {
  const base = filename.split(/[/\\]/).at(-1) ?? ''
  const clean = [...base].filter((character) => !isControl(character)).join('')
  if (clean === '' || clean === '.' || clean === '..') return null
  if (clean.length <= NAME_MAX_LENGTH) return clean
  const dot = clean.lastIndexOf('.')
  const extension = dot > 0 && clean.length - dot <= 16 ? clean.slice(dot) : ''
  return clean.slice(0, NAME_MAX_LENGTH - extension.length).toWellFormed() + extension
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0) ?? 0
  return code < 32 || (code >= 127 && code < 160)
}

function toPlainName({ nodeId, key, index }: Reported): string {
  return [nodeId, key, String(index + 1)]
    .map((part) => part.slice(0, NAME_PART_MAX_LENGTH).replace(/[^A-Za-z0-9_.-]/g, '_'))
    .filter((part) => part !== '')
    .join('_')
}
