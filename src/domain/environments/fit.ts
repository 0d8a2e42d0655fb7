/** What is made for one platform, and on which machines it runs. Pure. */
import type { Artifact } from './build.ts'
import { type BuildTarget, targetText } from './definition.ts'

type Kind = BuildTarget['gpu']

const FAMILIES: Readonly<Record<Kind, RegExp>> = { nvidia: /^cu\d/, amd: /^rocm/, apple: /^cpu$/, cpu: /^cpu$/ }

/** Whether a variant of torch, such as `cpu` or `cu130`, is one for this platform. */
export function isVariantFor(variant: string, { gpu }: Pick<BuildTarget, 'gpu'>): boolean {
  return FAMILIES[gpu].test(variant)
}

/** The first number of the CUDA that a variant is for; null: it needs none. */
export function cudaOf(variant: string): number | null {
  const [, number] = /^cu(\d{1,2})\d$/.exec(variant) ?? []
  return number === undefined ? null : Number(number)
}

/** Drivers run every CUDA of the same first number, and older ones. */
export function runsOnDriver(variant: string, cuda: number | null): boolean {
  return cuda === null || (cudaOf(variant) ?? 0) <= cuda
}

/** From the version of the driver of NVIDIA, such as `570.86.15`; null: none is known to run. */
export function cudaOfDriver(version: string): number | null {
  const major = Number.parseInt(version, 10)
  return DRIVERS.find(([from]) => major >= from)?.[1] ?? null
}

const DRIVERS = [
  [580, 13],
  [525, 12],
  [450, 11],
] as const

interface Machines {
  /** What releases are made for here, which is what engines here run on. */
  readonly targets: readonly BuildTarget[]
  /** As above; null: not known. */
  readonly cuda: number | null
}

/**
 * The target whose folder engines of a class of compute are started from; null: there is none. A class that bears the name of a card is
 * one of the one kind of cards that there is here.
 */
export function targetOfClass(gpuClass: string, { targets }: Pick<Machines, 'targets'>): BuildTarget | null {
  const named = targets.find(({ gpu }) => gpu === gpuClass)
  if (named !== undefined || gpuClass === 'cpu') return named ?? null
  return targets.find(({ gpu }) => gpu !== 'cpu') ?? null
}

/** Why no engine of a class can be started from what was made, and what to do; null: it can. */
export function whyNoEngine(
  artifacts: readonly Pick<Artifact, 'status' | 'target' | 'lock'>[],
  gpuClass: string,
  machines: Machines,
): string | null {
  const target = targetOfClass(gpuClass, machines)
  const ready = artifacts.filter(({ status }) => status === 'ready')
  const has = ready.length === 0 ? 'nothing yet' : ready.map((each) => targetText(each.target)).join(', ')
  if (target === null) return `it is built for ${has}, and engines of class ${gpuClass} cannot be started here`
  const name = targetText(target)
  const made = ready.find((each) => targetText(each.target) === name)
  if (made === undefined)
    return `it is built for ${has}, and class ${gpuClass} needs ${name}; cut the release for that target, too`
  const variant = made.lock?.torch.variant ?? ''
  return runsOnDriver(variant, machines.cuda)
    ? null
    : `its torch is for ${variant}, and the driver here runs CUDA ${machines.cuda} at most; choose another base image, and cut a release of it`
}
