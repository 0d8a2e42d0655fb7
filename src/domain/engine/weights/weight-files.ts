/**
 * The files of weights that an engine has. A server that lists its folders tells sizes; of any other, and of files that it does
 * not list, the choices of its loaders tell the names.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { folderOfInput } from '../../workflows/model-folders.ts'
import { isWeights } from '../../workflows/needs.ts'

export interface WeightFile {
  /** null: not known. */
  readonly folder: string | null
  /** Within its folder, as workflows name it. */
  readonly name: string
  /** null: not known. */
  readonly sizeBytes: number | null
  /** `blake3:` or `sha256:` and hex; null: not known. */
  readonly hash: string | null
}

/** A file of weights on one engine of the service. */
export interface ListedWeight extends WeightFile {
  readonly engineId: string
  readonly isLoaded: boolean
}

/** More than any installation has; bounds what is kept and published of one engine. */
export const MAX_WEIGHT_FILES = 50_000

/** `told`: what the engine lists itself; null: it does not. */
export function weightFilesOf(catalog: NodeCatalog | null, told: readonly WeightFile[] | null): readonly WeightFile[] {
  const files = new Map((told ?? []).map((file) => [`${file.folder}/${file.name}`, file]))
  const toldNames = new Set((told ?? []).map(({ name }) => name))
  for (const { classType, input, name } of weightChoices(catalog)) {
    if (toldNames.has(name)) continue
    const folder = folderOfInput(classType, input)
    const key = `${folder}/${name}`
    if (!files.has(key)) files.set(key, { folder, name, sizeBytes: null, hash: null })
  }
  return [...files.values()]
}

interface WeightChoice {
  readonly classType: string
  readonly input: string
  readonly name: string
}

/** Every file of weights that some class of the catalog offers as a choice. */
export function* weightChoices(catalog: NodeCatalog | null): Generator<WeightChoice> {
  for (const classType of catalog?.classTypes() ?? []) {
    const { required = {}, optional = {} } = catalog?.find(classType)?.input ?? {}
    for (const [input, [type, options]] of [...Object.entries(required), ...Object.entries(optional)]) {
      const choices = Array.isArray(type) ? type : Array.isArray(options?.options) ? options.options : []
      for (const name of choices) if (typeof name === 'string' && isWeights(name)) yield { classType, input, name }
    }
  }
}

type WeightPlace = Pick<ListedWeight, 'engineId' | 'folder' | 'name'>

/** In the order in which lists show them. */
export function compareWeights(one: WeightPlace, other: WeightPlace): number {
  return (
    compareTexts(one.engineId, other.engineId) ||
    compareTexts(one.folder ?? '', other.folder ?? '') ||
    compareTexts(one.name, other.name)
  )
}

function compareTexts(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1
}
