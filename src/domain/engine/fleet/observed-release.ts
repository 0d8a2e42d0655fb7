/**
 * The environment of a server that was not made from a release of ours: what it says of itself, and an id that follows from it. The same
 * id is the same environment as far as a server tells: versions, packs with their classes, files of weights with their sizes. What it
 * does not tell (commits of packs, versions of packages, hashes of weights) the id cannot hold, which is why it is only observed.
 */
import { createHash } from 'node:crypto'
import type { ObjectInfo } from '../../../../engine/graph/object-info.ts'
import type { WeightFile } from '../weights/weight-files.ts'

/** null: it does not say. */
export interface EngineRuntime {
  readonly python: string | null
  readonly torch: string | null
}

export interface ObservedRelease extends EngineRuntime {
  /** `obs-` and 16 hex digits. */
  readonly id: string
  readonly comfyui: string | null
  /** Folders of packs that brought a class, in their order; the first of them where there are very many. */
  readonly packs: readonly string[]
}

export interface ObservedFacts extends EngineRuntime {
  readonly comfyui: string | null
  readonly info: ObjectInfo
  /** null: it lists none. */
  readonly weights: readonly WeightFile[] | null
}

const MAX_PACKS = 500
const MAX_TEXT = 128
const PACK = /^custom_nodes\.(.+)$/

export function observeRelease({ comfyui, python, torch, info, weights }: ObservedFacts): ObservedRelease {
  const classes = Object.entries(info).map(([name, { python_module: module }]) => [String(module ?? ''), name])
  const packs = new Set(classes.flatMap(([module = '']) => PACK.exec(module)?.[1] ?? []))
  const files = (weights ?? []).map(({ folder, name, sizeBytes }) => [folder, name, sizeBytes])
  const told = [comfyui, python, torch, inOrder(classes), inOrder(files)]
  const digest = createHash('sha256').update(JSON.stringify(told)).digest('hex')
  return {
    id: `obs-${digest.slice(0, 16)}`,
    ...{ comfyui: cut(comfyui), python: cut(python), torch: cut(torch) },
    packs: [...packs]
      .sort()
      .slice(0, MAX_PACKS)
      .map((name) => name.slice(0, MAX_TEXT)),
  }
}

function inOrder(rows: readonly (readonly unknown[])[]): readonly string[] {
  return rows.map((row) => JSON.stringify(row)).sort()
}

function cut(text: string | null): string | null {
  return text === null ? null : text.slice(0, MAX_TEXT)
}
