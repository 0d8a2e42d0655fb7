/**
 * From where packages come, in the words of pip and uv. Torch has a source of its own: each of its variants (`cpu`, `cu130`) is another
 * index, or another folder, and its versions must come from that one whatever else the other sources have.
 */
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { normalizePackage } from './requirements.ts'
import type { Step } from './workshop.ts'

/** Without an index and a folder: the public index. */
export interface PackageSources {
  readonly indexes: readonly string[]
  /** Folders with wheels. Without an index they are all there is, and no network is needed. */
  readonly wheelFolders: readonly string[]
  /** An address or an absolute path, in which `{variant}` stands for the variant; null: the public index of torch, or `indexes`. */
  readonly torch: string | null
}

export const VARIANT = '{variant}'

export function isAddress(text: string): boolean {
  return /^https?:\/\//.test(text)
}

export function pipSources({ indexes: [first, ...more], wheelFolders }: PackageSources): readonly string[] {
  return [
    ...(first === undefined ? (wheelFolders.length > 0 ? ['--no-index'] : []) : ['--index-url', first]),
    ...more.flatMap((index) => ['--extra-index-url', index]),
    ...wheelFolders.flatMap((folder) => ['--find-links', folder]),
  ]
}

/** For whatever an install script does with pip by itself. */
export function pipEnvironment({
  indexes: [first, ...more],
  wheelFolders,
}: PackageSources): Readonly<Record<string, string>> {
  return {
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_INPUT: '1',
    ...(first === undefined ? (wheelFolders.length > 0 ? { PIP_NO_INDEX: '1' } : {}) : { PIP_INDEX_URL: first }),
    ...(more.length > 0 ? { PIP_EXTRA_INDEX_URL: more.join(' ') } : {}),
    ...(wheelFolders.length > 0 ? { PIP_FIND_LINKS: wheelFolders.join(' ') } : {}),
  }
}

/** All of them at once. `variant`: of torch. */
export function uvSources({ indexes, wheelFolders, torch }: PackageSources, variant: string): readonly string[] {
  const own = torch?.replaceAll(VARIANT, variant) ?? null
  const ownIndex = own !== null && isAddress(own) ? [own] : []
  const isOffline = indexes.length === 0 && wheelFolders.length > 0
  // With folders alone there is no default index, unless torch has one.
  const [first, ...more] = isOffline ? ownIndex : indexes.length > 0 ? [...indexes, ...ownIndex] : ['', ...ownIndex]
  return [
    ...(own === null && indexes.length === 0 && !isOffline ? ['--torch-backend', variant] : []),
    ...(first === undefined ? ['--no-index'] : first === '' ? [] : ['--default-index', first]),
    ...more.flatMap((index) => ['--index', index]),
    ...[...(own === null || isAddress(own) ? [] : [own]), ...wheelFolders].flatMap((each) => ['--find-links', each]),
    ...['--index-strategy', 'unsafe-best-match'],
  ]
}

/**
 * The same in an order: what the source of torch has comes from there alone. Only its versions are taken from what is found so, because
 * such an index often has old versions of other packages, too.
 */
export async function uvTorchSources(
  step: Pick<Step, 'scratch' | 'give'>,
  { indexes, wheelFolders, torch }: PackageSources,
  variant: string,
): Promise<readonly string[]> {
  const toIndex = async (place: string, name: string) =>
    isAddress(place) ? place : writeIndex(step, place, `index-${name}`)
  const places = [torch?.replaceAll(VARIANT, variant) ?? '', ...wheelFolders]
  const found = [...(await Promise.all(places.map((place, at) => toIndex(place, String(at))))), ...indexes]
  const isPublic = indexes.length === 0 && wheelFolders.length === 0
  const [last] = isPublic ? [] : found.splice(-1)
  return [
    ...found.flatMap((index) => ['--index', index]),
    ...(last === undefined ? [] : ['--default-index', last]),
    ...['--index-strategy', 'first-index'],
  ]
}

/** Folders with wheels as an index, because only those have an order. Resolves with its address. */
async function writeIndex(
  { scratch, give }: Pick<Step, 'scratch' | 'give'>,
  folder: string,
  name: string,
): Promise<string> {
  const root = join(scratch, name)
  await mkdir(root, { recursive: true })
  const wheels = ((await readdir(folder).catch(nullWhenMissing)) ?? []).filter((file) => file.endsWith('.whl'))
  const byPackage = Map.groupBy(wheels, (file) => normalizePackage(file.split('-')[0] ?? ''))
  for (const [each, files] of byPackage) {
    const links = files.map((file) => `<a href="${pathToFileURL(join(folder, file)).href}">${file}</a>\n`)
    await mkdir(join(root, each), { recursive: true })
    await writeFile(join(root, each, 'index.html'), links.join(''))
  }
  await give(root)
  return pathToFileURL(root).href
}
