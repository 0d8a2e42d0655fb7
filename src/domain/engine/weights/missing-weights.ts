/** Where a file of weights belongs that some engine lacks, and which engines have it. */
import { folderOfInput } from '../../workflows/model-folders.ts'
import { isWeights, type Lack, type PlacedLack } from '../../workflows/needs.ts'
import type { ListedWeight } from './weight-files.ts'

interface WantedWeights {
  readonly classType: string
  readonly input: string
  readonly name: string
}

interface Whereabouts {
  /** null: not known. */
  readonly folder: string | null
  readonly engines: readonly string[]
}

export type FindWeights = (wanted: WantedWeights) => Whereabouts

export function findWhereabouts({ classType, input, name }: WantedWeights, all: readonly ListedWeight[]): Whereabouts {
  const same = all.filter((weight) => weight.name === name)
  const folder = folderOfInput(classType, input) ?? same.find((weight) => weight.folder !== null)?.folder ?? null
  // A file of the same name in another folder is another file.
  const owners = same.filter((weight) => folder === null || weight.folder === null || weight.folder === folder)
  return { folder, engines: [...new Set(owners.map(({ engineId }) => engineId))] }
}

/** `all` is asked for once, and only where weights are among what is missing. */
export function placeLacks(lacks: readonly Lack[], all: () => readonly ListedWeight[]): PlacedLack[] {
  let listed: readonly ListedWeight[] | null = null
  return lacks.map((lack) => {
    const { classType, input, value: name } = lack
    if (input === null || name === null || !isWeights(name)) return { ...lack, missing: null }
    listed ??= all()
    return { ...lack, missing: findWhereabouts({ classType, input, name }, listed) }
  })
}
