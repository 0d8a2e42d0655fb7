/**
 * Notices as lines of text, the same for every medium between processes: a letter for the kind, then its fields, separated by
 * spaces. Only a live event has more: its JSON as the last field, and the bytes of a picture beside the line. A line that
 * cannot be understood is null: it may come from a newer version of this program, and every notice may be lost.
 *
 *   c <job> <account> <version> [<move>]     w [<pool>]     l <job> <account> <event>
 *   a|k|d|e|m <version>                      r <call> <account> <move>
 */
import {
  CALL_MOVES,
  type CallMoved,
  type Directory,
  type DirectoryChanged,
  JOB_MOVES,
  type JobChanged,
  type JobLive,
} from './event-bus.ts'
import type { LiveEvent } from './live-event.ts'
import { decodeLiveEvent, encodeLiveEvent } from './live-event-wire.ts'

export type Notice =
  | { readonly kind: 'changed'; readonly notice: JobChanged }
  | { readonly kind: 'live'; readonly notice: JobLive<LiveEvent> }
  | { readonly kind: 'work'; readonly pool: string | undefined }
  | { readonly kind: 'directory'; readonly notice: DirectoryChanged }
  | { readonly kind: 'call'; readonly notice: CallMoved }

export interface EncodedNotice {
  /** Without a line end. */
  readonly line: string
  /** What belongs to the line and is no text; null: nothing. */
  readonly bytes: Uint8Array | null
}

// Ids are short; a longer text is none, and would make a line that its medium refuses.
const MAX_ID_LENGTH = 200
const LETTERS: Readonly<Record<Directory, string>> = {
  accounts: 'a',
  keys: 'k',
  deployments: 'd',
  engines: 'e',
  'engine-lists': 'n',
  models: 'm',
}
const DIRECTORY_OF: ReadonlyMap<string, Directory> = new Map(
  Object.entries(LETTERS).map(([directory, letter]) => [letter, directory as Directory]),
)

/** null: it cannot be told, because it is too large or one of its ids is no id. */
export function encodeNotice(notice: Notice): EncodedNotice | null {
  if (notice.kind === 'live') return encodeLive(notice.notice)
  const fields = toFields(notice)
  return fields === null ? null : { line: fields.join(' '), bytes: null }
}

function toFields(notice: Exclude<Notice, { kind: 'live' }>): readonly string[] | null {
  if (notice.kind === 'changed') {
    const { jobId, accountId, version, move } = notice.notice
    const fields = ['c', toField(jobId), toField(accountId), toVersion(version)]
    return isComplete(fields) ? [...fields, ...(move === undefined ? [] : [move])] : null
  }
  if (notice.kind === 'directory') {
    const fields = [LETTERS[notice.notice.directory], toVersion(notice.notice.version)]
    return isComplete(fields) ? fields : null
  }
  if (notice.kind === 'call') {
    const { callId, accountId, move } = notice.notice
    const fields = ['r', toField(callId), toField(accountId), move]
    return isComplete(fields) ? fields : null
  }
  if (notice.pool === undefined) return ['w']
  const fields = ['w', toField(notice.pool)]
  return isComplete(fields) ? fields : null
}

function encodeLive({ jobId, accountId, event }: JobLive<LiveEvent>): EncodedNotice | null {
  const fields = ['l', toField(jobId), toField(accountId)]
  const encoded = isComplete(fields) ? encodeLiveEvent(event) : null
  return encoded === null ? null : { line: `${fields.join(' ')} ${encoded.text}`, bytes: encoded.bytes }
}

function isComplete(fields: readonly (string | null)[]): fields is readonly string[] {
  return !fields.includes(null)
}

/** Percent-encoded: an id that somebody chose may hold a space, and must not become two fields. */
function toField(id: string): string | null {
  if (id === '' || id.length > MAX_ID_LENGTH || !id.isWellFormed()) return null
  return encodeURIComponent(id)
}

function toVersion(version: number): string | null {
  return Number.isSafeInteger(version) && version >= 0 ? String(version) : null
}

export function decodeNotice({ line, bytes }: EncodedNotice): Notice | null {
  const letter = line.slice(0, 1)
  if (letter === 'l') return decodeLive(line, bytes)
  const [, ...fields] = line.split(' ', 6)
  if (letter === 'c') return readChanged(fields)
  if (letter === 'w') return readWork(fields)
  if (letter === 'r') return readCall(fields)
  const directory = DIRECTORY_OF.get(letter)
  const version = readVersion(fields[0])
  if (directory === undefined || version === null || line[1] !== ' ') return null
  return { kind: 'directory', notice: { directory, version } }
}

function decodeLive(line: string, bytes: Uint8Array | null): Notice | null {
  const afterJob = line.indexOf(' ', 2)
  const afterAccount = line.indexOf(' ', afterJob + 1)
  if (line[1] !== ' ' || afterJob < 0 || afterAccount < 0) return null
  const jobId = readField(line.slice(2, afterJob))
  const accountId = readField(line.slice(afterJob + 1, afterAccount))
  if (jobId === null || accountId === null) return null
  const event = decodeLiveEvent({ text: line.slice(afterAccount + 1), bytes })
  return event === null ? null : { kind: 'live', notice: { jobId, accountId, event } }
}

function readChanged(fields: readonly string[]): Notice | null {
  const [jobId, accountId, version] = [readField(fields[0]), readField(fields[1]), readVersion(fields[2])]
  if (jobId === null || accountId === null || version === null) return null
  if (fields[3] === undefined) return { kind: 'changed', notice: { jobId, accountId, version } }
  const move = JOB_MOVES.find((each) => each === fields[3])
  return move === undefined ? null : { kind: 'changed', notice: { jobId, accountId, version, move } }
}

function readWork([field]: readonly string[]): Notice | null {
  if (field === undefined) return { kind: 'work', pool: undefined }
  const pool = readField(field)
  return pool === null ? null : { kind: 'work', pool }
}

function readCall(fields: readonly string[]): Notice | null {
  const [callId, accountId] = [readField(fields[0]), readField(fields[1])]
  const move = CALL_MOVES.find((each) => each === fields[2])
  if (callId === null || accountId === null || move === undefined) return null
  return { kind: 'call', notice: { callId, accountId, move } }
}

function readField(text: string | undefined): string | null {
  // Every character becomes at most twelve.
  if (text === undefined || text === '' || text.length > MAX_ID_LENGTH * 12) return null
  try {
    const id = decodeURIComponent(text)
    return id.length > MAX_ID_LENGTH ? null : id
  } catch {
    return null
  }
}

function readVersion(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return null
  const version = Number(text)
  return Number.isSafeInteger(version) ? version : null
}
