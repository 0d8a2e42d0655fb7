/**
 * Which Pythons and variants of torch environments can be made of here: torch for the platform of the target, as far as the driver of
 * the machine runs it and its source has it.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { type BaseImage, BuilderLacks } from '../../domain/environments/builder.ts'
import { type BuildTarget, targetText } from '../../domain/environments/definition.ts'
import { isVariantFor, runsOnDriver } from '../../domain/environments/fit.ts'
import type { ReleaseLock } from '../../domain/environments/lock.ts'
import { isAddress, type PackageSources, VARIANT } from './package-sources.ts'
import type { Python } from './tools.ts'

// The variants of torch for which the public index of torch has packages, the usual one first.
const PUBLIC: Readonly<Record<BuildTarget['gpu'], readonly string[]>> = {
  cpu: ['cpu'],
  nvidia: ['cu130', 'cu128', 'cu126'],
  amd: ['rocm6.4'],
  apple: ['cpu'],
}

interface Machine {
  readonly pythons: readonly Python[]
  readonly targets: readonly BuildTarget[]
  readonly torch: PackageSources['torch']
  /** The newest CUDA that its driver runs, by its first number; null: it is not known, or another machine runs what is made here. */
  readonly cuda: number | null
}

export async function listBaseImages({ pythons, targets, torch, cuda }: Machine): Promise<readonly BaseImage[]> {
  const own = await listOwn(torch)
  const images: BaseImage[] = []
  for (const target of targets) {
    const known = own?.filter((variant) => isVariantFor(variant, target)) ?? PUBLIC[target.gpu]
    for (const variant of known.filter((each) => runsOnDriver(each, cuda))) {
      for (const { version } of pythons) {
        const id = `${variant.replace(/^cu/, 'cuda')}-py${version.replace('.', '')}`
        const at = images.findIndex((image) => image.id === id)
        const before = images[at]
        if (before !== undefined) images[at] = { ...before, targets: [...before.targets, target] }
        else
          images.push({
            ...{ id, label: `Python ${version}, torch for ${variant}` },
            ...{ python: version, torch: variant, targets: [target], isDefault: images.length === 0 },
          })
      }
    }
  }
  return images
}

/** The variants that lie in a folder of the operator, the newest first; null: it is no folder that says so. */
async function listOwn(torch: PackageSources['torch']): Promise<readonly string[] | null> {
  if (torch === null || isAddress(torch) || !torch.includes(VARIANT)) return null
  const [folder = ''] = torch.split(VARIANT)
  const names = (await readdir(folder.endsWith('/') ? folder : join(folder, '..')).catch(nullWhenMissing)) ?? []
  const numberOf = (variant: string) => Number(/[\d.]+$/.exec(variant)?.[0] ?? 0)
  return names.filter((name) => VARIANT_NAME.test(name)).toSorted((one, other) => numberOf(other) - numberOf(one))
}

const VARIANT_NAME = /^(?:cpu|cu\d{2,3}|rocm\d+(?:\.\d+)*)$/

export interface Base {
  readonly python: Python
  /** As uv and the lock name it, such as `cpu` or `cu130`. */
  readonly torch: string
}

interface Known {
  readonly images: readonly BaseImage[]
  readonly pythons: readonly Python[]
}

/** `lock`: of this target, or of another one of the release. Throws BuilderLacks. */
export function chooseBase(
  { baseImage, lock }: { readonly baseImage: string | undefined; readonly lock: ReleaseLock | null },
  target: BuildTarget,
  { images, pythons }: Known,
): Base {
  if (pythons.length === 0)
    throw new BuilderLacks('start', 'the builder has no Python; the operator must install Python 3.10 or newer')
  const ofTarget = images.filter(({ targets }) => targets.some((each) => targetText(each) === targetText(target)))
  const [usual] = ofTarget
  if (usual === undefined)
    throw new BuilderLacks(
      'start',
      `the builder has no torch for ${targetText(target)}: its driver is too old for every variant, or "torch" of builder has none; the operator must correct that`,
    )
  const id = baseImage ?? usual.id
  const named = images.find((image) => image.id === id)
  const version = lock?.python ?? named?.python ?? /-py(\d)(\d{1,2})$/.exec(id)?.slice(1).join('.')
  const python = pythons.find((each) => each.version === version)
  if (python === undefined || (named === undefined && lock === null)) {
    const why = python === undefined && version !== undefined ? `: there is no Python ${version}` : ''
    const has = images.map((image) => image.id).join(', ')
    throw new BuilderLacks(
      'start',
      `the base image ${id} cannot be made here${why}; choose one of ${has}, or have the operator provide it`,
    )
  }
  const torch = ofTarget.find((image) => image.id === id)?.torch ?? usual.torch
  if (lock === null || !isVariantFor(lock.torch.variant, target)) return { python, torch }
  if (ofTarget.some((image) => image.torch === lock.torch.variant)) return { python, torch: lock.torch.variant }
  throw new BuilderLacks(
    'start',
    `the release is locked to torch for ${lock.torch.variant}, which this builder cannot get or its machine does not run; cut a release of a changed build`,
  )
}
