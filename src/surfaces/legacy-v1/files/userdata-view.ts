/** Listings of an account's user files, in the forms that clients ask for. Pure. */
import type { UserFileInfo } from '../../../domain/accounts/user-files.ts'

/** Files in a folder, with paths relative to it. */
export function filesBelow(files: readonly UserFileInfo[], folder: string): UserFileInfo[] {
  const start = `${folder}/`
  return files.flatMap((file) =>
    file.path.startsWith(start) ? [{ ...file, path: file.path.slice(start.length) }] : [],
  )
}

interface ListingOptions {
  readonly isDeep: boolean
  readonly hasInfo: boolean
  readonly isSplit: boolean
}

export function toListing(files: readonly UserFileInfo[], { isDeep, hasInfo, isSplit }: ListingOptions): object {
  const listed = isDeep ? files : files.filter(({ path }) => !path.includes('/'))
  if (hasInfo) return listed.map(toFileInfo)
  return listed.map(({ path }) => (isSplit ? [path, ...path.split('/')] : path))
}

export function toFileInfo({ path, sizeBytes, modifiedAt, createdAt }: UserFileInfo): object {
  return { path, size: sizeBytes, modified: modifiedAt.getTime(), created: createdAt.getTime() }
}

/** Everything below a folder, folders before files, each with its whole path. */
export function toTree(files: readonly UserFileInfo[], folder: string): object[] {
  const below = folder === '' ? files : files.filter(({ path }) => path.startsWith(`${folder}/`))
  const folders = new Set(below.flatMap(({ path }) => foldersOf(path, folder)))
  const directories = [...folders].sort().map((path) => ({ name: nameOf(path), path, type: 'directory' }))
  const entries = below.map(({ path, sizeBytes, modifiedAt }) => ({
    name: nameOf(path),
    path,
    type: 'file',
    size: sizeBytes,
    modified: modifiedAt.getTime() / 1000,
  }))
  return [...directories, ...entries]
}

function foldersOf(path: string, root: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/')).filter((one) => one.length > root.length)
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
