/**
 * All packages of a release in one step: what ComfyUI and every pack ask for, for the Python and the platform of the target, each
 * package with its hashes. Torch is chosen for ComfyUI alone and then fixed, so that no pack changes it. Pins of the build override
 * what packages ask for and add nothing. Where there is no answer, the packs that exclude each other are found and named.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { leadsOut, nullWhenMissing } from '../../../lib/files/inside-folder.ts'
import { BuildFailure } from '../../domain/environments/builder.ts'
import type { BuildTarget } from '../../domain/environments/definition.ts'
import { cudaOf } from '../../domain/environments/fit.ts'
import type { Base } from './base-images.ts'
import { type PackageSources, uvSources, uvTorchSources } from './package-sources.ts'
import { findOtherVariant, isOfTorch, lockedVersions, type Requirement, readRequirements } from './requirements.ts'
import { failureOf, quoteLines, run, type Step } from './workshop.ts'

interface Asking {
  /** `ComfyUI`, or the name of a pack. */
  readonly who: string
  readonly requirements: readonly Requirement[]
}

interface Resolving {
  readonly uv: string
  readonly base: Base
  readonly target: BuildTarget
  readonly sources: PackageSources
  readonly overrides: readonly Requirement[]
  /** For uv, in place of all sources at once. */
  readonly words?: readonly string[]
}

const MAX_INCLUDES = 20
const MAX_TEXT = 1_000_000

/** What one `requirements.txt` asks for, with the files that it includes. Throws BuildFailure. */
export async function readAsking(step: Step, who: string, folder: string): Promise<Asking> {
  const requirements: Requirement[] = []
  const todo = ['requirements.txt']
  const what = who === 'ComfyUI' ? who : `pack ${who}`
  for (let index = 0; index < todo.length; index++) {
    const name = todo[index] ?? ''
    const path = join(folder, name)
    const isOut = relative(folder, path).startsWith('..') || (await leadsOut(folder, path))
    const text = isOut || index > MAX_INCLUDES ? null : await readFile(path, 'utf8').catch(nullWhenMissing)
    if (text === null && index === 0) break
    if (text === null || text.length > MAX_TEXT)
      throw new BuildFailure(
        'freeze',
        `${what}: its requirements name the file ${JSON.stringify(name)}, which it does not have or which is too large`,
      )
    const read = readRequirements(text)
    const [refused] = read.refused
    if (refused !== undefined)
      throw new BuildFailure(
        'freeze',
        `${what}: its requirements ask for ${refused}; have the pack ask for a published version`,
      )
    for (const line of read.skipped) step.say(`${what}: left out of its requirements: ${line}`)
    requirements.push(...read.requirements)
    todo.push(...read.includes.map((include) => join(dirname(name), include)))
  }
  return { who, requirements }
}

/** The pins of a build. What cannot be a pin is left out with a line in the log: people paste what `pip freeze` prints. */
export function readPins(step: Pick<Step, 'say'>, text: string): readonly Requirement[] {
  const { requirements, skipped, refused, includes } = readRequirements(text)
  for (const line of [...skipped, ...refused, ...includes]) step.say(`left out of the pins: ${line}`)
  const ofTorch = requirements.filter(isOfTorch)
  if (ofTorch.length > 0)
    step.say(
      `left out of the pins, because they belong to the base image: ${ofTorch.map(({ text: pin }) => pin).join(', ')}`,
    )
  return requirements.filter((pin) => !isOfTorch(pin))
}

/** The lock's text. `packs`: in the order of the build. Throws BuildFailure. */
export async function resolvePackages(
  step: Step,
  comfyui: Asking,
  packs: readonly Asking[],
  resolving: Resolving,
): Promise<string> {
  const wheels = await resolveAll(step, comfyui, packs, resolving)
  const { torch: variant } = resolving.base
  const other = findOtherVariant(wheels, variant, cudaOf(variant))
  if (other === null) return wheels
  throw new BuildFailure(
    'freeze',
    `${other}, and the base image is for ${variant}: the packages that the builder reaches have no other; the operator must say in "torch" of builder where torch for ${variant} comes from`,
  )
}

async function resolveAll(
  step: Step,
  comfyui: Asking,
  packs: readonly Asking[],
  resolving: Resolving,
): Promise<string> {
  const first = await compile(step, [comfyui], {
    ...resolving,
    overrides: [...resolving.overrides, ...(await findOwnTorch(step, comfyui, resolving))],
  })
  if (first.text === null)
    throw failureOf(
      'freeze',
      'ComfyUI: what it asks for cannot be had from the packages that the builder reaches; change baseComfyVersion, the base image or the pins',
      first.ran,
    )
  const torch = torchOf(first.text)
  for (const { who, requirements } of packs)
    for (const wish of requirements.filter(isOfTorch))
      if (wish.text !== wish.name) step.say(`pack ${who} asks for ${wish.text}; torch belongs to the base image`)
  const fixed = { ...resolving, overrides: [...resolving.overrides, ...torch] }
  const asking = packs.filter(({ requirements }) => requirements.length > 0)
  if (asking.length === 0) return first.text
  step.say(`resolving the packages of ComfyUI and of ${asking.length} packs`)
  const all = await compile(step, [comfyui, ...asking], fixed)
  if (all.text !== null) return all.text
  throw await explain(step, comfyui, asking, { all, fixed })
}

function torchOf(wheels: string): readonly Requirement[] {
  return [...lockedVersions(wheels)].map(([name, version]) => ({ name, text: `${name}==${version}` })).filter(isOfTorch)
}

/** The versions of torch that its own source has for ComfyUI, where the operator names one. Throws BuildFailure. */
async function findOwnTorch(step: Step, comfyui: Asking, resolving: Resolving): Promise<readonly Requirement[]> {
  const { sources, base } = resolving
  const requirements = comfyui.requirements.filter(isOfTorch)
  if (sources.torch === null || requirements.length === 0) return []
  const words = await uvTorchSources(step, sources, base.torch)
  const { text, ran } = await compile(step, [{ ...comfyui, requirements }], { ...resolving, words })
  if (text !== null) return torchOf(text)
  throw failureOf(
    'freeze',
    `torch for ${base.torch} cannot be had from where the operator says in "torch" of builder; choose another base image, or have the operator provide it`,
    ran,
  )
}

interface Compiled {
  readonly text: string | null
  readonly ran: Awaited<ReturnType<typeof run>>
}

async function compile(
  step: Step,
  asking: readonly Asking[],
  { uv, base, target, sources, overrides, words = uvSources(sources, base.torch) }: Resolving,
): Promise<Compiled> {
  const folder = join(step.scratch, `packages-${randomUUID()}`)
  await mkdir(folder, { recursive: true })
  const write = async (name: string, lines: readonly Requirement[]) => {
    await writeFile(join(folder, name), lines.map(({ text }) => `${text}\n`).join(''))
    return name
  }
  const files: string[] = []
  for (const [index, { who, requirements }] of asking.entries())
    files.push(await write(`${index}-${who.replace(/\W+/g, '-')}.txt`, requirements))
  const pins = await write('overrides.txt', overrides)
  await step.give(folder)
  const ran = await run(
    step,
    [
      ...[uv, 'pip', 'compile', ...files, '--overrides', pins, '--output-file', 'lock.txt', '--generate-hashes'],
      ...['--no-header', '--no-annotate', '--no-config', '--quiet', '--python', base.python.path],
      ...['--python-version', base.python.version, '--python-platform', platformOf(target), ...words],
    ],
    { cwd: folder, isQuiet: true },
  )
  return { text: ran.code === 0 ? await readFile(join(folder, 'lock.txt'), 'utf8') : null, ran }
}

function platformOf({ os }: BuildTarget): string {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  if (os === 'linux') return `${machine}-unknown-linux-gnu`
  return os === 'darwin' ? `${machine}-apple-darwin` : `${machine}-pc-windows-msvc`
}

interface Unsolved {
  readonly all: Compiled
  readonly fixed: Resolving
}

/** Asks again with fewer packs, until it is clear which of them it is about. */
async function explain(
  step: Step,
  comfyui: Asking,
  packs: readonly Asking[],
  { all, fixed }: Unsolved,
): Promise<BuildFailure> {
  const text = (ran: Compiled['ran']) => quoteLines(ran.lastLines)
  const before: Asking[] = []
  for (const pack of packs) {
    const alone = await compile(step, [comfyui, pack], fixed)
    if (alone.text === null) {
      if (alone.ran.lastLines.some((line) => /No space left|os error 28/.test(line)))
        return failureOf('freeze', '', alone.ran)
      return new BuildFailure(
        'freeze',
        `pack ${pack.who}: what its requirements.txt asks for cannot be had, or not together with ComfyUI; correct the pack, or pin the package in pipDependencies${text(alone.ran)}`,
      )
    }
    if (before.length > 0 && (await compile(step, [comfyui, ...before, pack], fixed)).text === null) {
      for (const other of before) {
        const pair = await compile(step, [comfyui, other, pack], fixed)
        if (pair.text === null)
          return new BuildFailure(
            'freeze',
            `the packs ${other.who} and ${pack.who} exclude each other; remove one, take another version of one, or pin the package in pipDependencies${text(pair.ran)}`,
          )
      }
      return new BuildFailure(
        'freeze',
        `the packs ${[...before, pack].map(({ who }) => who).join(', ')} cannot be installed together; remove one of them, or pin the package in pipDependencies${text(all.ran)}`,
      )
    }
    before.push(pack)
  }
  return failureOf('freeze', 'the packages of the packs cannot be resolved just now; cut the release again', all.ran)
}
