/**
 * Names of files as clients give them: plain, with folders in front, or with the folder in brackets at the end. Names are
 * looked up and never become paths of a disk, but one that leads out of its folder is refused, as ComfyUI refuses it.
 */
import type { ShelfFolder } from '../../../domain/assets/asset-shelf.ts'

const FOLDERS: readonly string[] = ['input', 'output', 'temp']
const ANNOTATION = / \[(input|output|temp)\]$/

/** null for a word that names no folder. */
export function readFolder(text: string): ShelfFolder | null {
  return FOLDERS.includes(text) ? (text as ShelfFolder) : null
}

/** `x.png [output]` names its own folder. */
export function readAnnotated(name: string): { readonly name: string; readonly folder: ShelfFolder | null } {
  const folder = ANNOTATION.exec(name)?.[1] ?? null
  return { name: name.replace(ANNOTATION, ''), folder: folder as ShelfFolder | null }
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
