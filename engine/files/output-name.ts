/**
 * Names of output files: `{folder of the prefix}/{base name}_{number}_.ext`. The prefix is the caller's text, so it is
 * judged as text and never touches a file system here.
 */
import { posix } from 'node:path'
import { NodeError } from '../node/node-error.ts'

export interface OutputName {
  readonly subfolder: string
  /** May still hold %batch_num%. */
  readonly baseName: string
}

interface NameValues {
  readonly width: number
  readonly height: number
  readonly now: Date
}

export const BATCH_TOKEN = '%batch_num%'
// What file systems take as one name, less room for the number and the extension.
const MAX_NAME_LENGTH = 200

const two = (value: number) => String(value).padStart(2, '0')

function replaceTokens(prefix: string, { width, height, now }: NameValues): string {
  if (!prefix.includes('%')) return prefix
  const tokens: Readonly<Record<string, string>> = {
    '%width%': String(width),
    '%height%': String(height),
    '%year%': String(now.getFullYear()),
    '%month%': two(now.getMonth() + 1),
    '%day%': two(now.getDate()),
    '%hour%': two(now.getHours()),
    '%minute%': two(now.getMinutes()),
    '%second%': two(now.getSeconds()),
  }
  return Object.entries(tokens).reduce((text, [token, value]) => text.replaceAll(token, value), prefix)
}

function outsideOutput(): NodeError {
  return new NodeError('Exception', '**** ERROR: Saving image outside the output folder is not allowed.')
}

/** Throws NodeError when the prefix leads out of the output folder, or cannot be a file name. */
export function readPrefix(prefix: string, values: NameValues): OutputName {
  // Both slashes separate, whatever the system: a name must mean the same everywhere.
  const path = replaceTokens(prefix, values).replaceAll('\\', '/')
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path)) throw outsideOutput()
  // As ComfyUI does: the whole is resolved first, and its last part is the name.
  const folders = posix.normalize(path).replace(/\/$/, '').split('/')
  const baseName = folders.pop() ?? '.'
  if (folders[0] === '..') throw outsideOutput()
  const subfolder = folders.join('/')
  for (const part of [...folders, baseName]) {
    if (part.includes('\0')) throw new NodeError('ValueError', 'filename_prefix: embedded null byte')
    if (Buffer.byteLength(part) > MAX_NAME_LENGTH) {
      throw new NodeError('OSError', `filename_prefix: a name is longer than ${MAX_NAME_LENGTH} bytes`)
    }
  }
  return { subfolder, baseName }
}

/** What a saved file carries about itself, in this order: keys and texts, such as the graph that made it. */
export type FileTags = readonly (readonly [key: string, value: string])[]
