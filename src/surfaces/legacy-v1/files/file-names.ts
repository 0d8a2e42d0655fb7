/**
 * Names of files as clients give them: plain, with folders in front, or with the folder in brackets at the end. Names are
 * looked up and never become paths of a disk, but one that leads out of its folder is refused, as ComfyUI refuses it.
 */
import type { FileFolder } from '../../../domain/assets/named-files.ts'
import { ServiceError } from '../../../domain/errors.ts'

const FOLDERS: readonly string[] = ['input', 'output', 'temp']
const ANNOTATION = / \[(input|output|temp)\]$/

/** null for a word that names no folder. */
export function readFolder(text: string): FileFolder | null {
  return FOLDERS.includes(text) ? (text as FileFolder) : null
}

/** `x.png [output]` names its own folder. */
export function readAnnotated(name: string): { readonly name: string; readonly folder: FileFolder | null } {
  const folder = ANNOTATION.exec(name)?.[1] ?? null
  return { name: name.replace(ANNOTATION, ''), folder: folder as FileFolder | null }
}

/** The last part of a path, with slashes or backslashes. */
export function toBaseName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
}

/** Does a relative path lead out of the folder that it is joined to? */
export function leavesFolder(path: string): boolean {
  if (path.startsWith('/') || path.includes('\0')) return true
  let depth = 0
  for (const part of path.split('/')) {
    if (part === '..') depth--
    else if (part !== '' && part !== '.') depth++
    if (depth < 0) return true
  }
  return false
}

/** The subfolder without empty parts and dots, so that each folder has one spelling. */
export function toSubfolder(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')
}

/** Pictures are decoded as a whole, in memory. */
export const MAX_PICTURE_BYTES = 64 * 1024 * 1024

/** The whole of a stream in memory. Throws `payload_too_large` as soon as it is larger than allowed. */
export async function collectBytes(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > maxBytes) throw new ServiceError('payload_too_large', `the picture has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
