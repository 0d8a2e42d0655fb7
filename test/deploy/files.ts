/** The deployment files as data: what all checks of them read. */
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { readCommand, readDockerfile, readPairs } from '../../deploy/image/dockerfile.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))
export const chart = path.join(project, 'deploy/chart')

export function read(name: string): string {
  return readFileSync(path.join(project, name), 'utf8')
}

/** As much of a Kubernetes object as is looked at here. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec?: unknown
}

export interface Container {
  readonly name: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value?: string }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly securityContext?: unknown
  readonly livenessProbe?: unknown
  readonly readinessProbe?: unknown
  readonly terminationMessagePolicy?: string
}

export interface Pod {
  readonly kind: string
  readonly name: string
  readonly terminationGracePeriodSeconds?: number
  readonly securityContext?: unknown
  readonly containers: readonly Container[]
}

/** The sets of values that the chart is rendered with, and the copies that are kept of that. */
export function valueSets(): string[] {
  return globSync('ci/*.yaml', { cwd: chart })
    .map((file) => path.basename(file, '.yaml'))
    .toSorted()
}

export function renderedText(set: string): string {
  return readFileSync(path.join(chart, 'rendered', `${set}.yaml`), 'utf8')
}

export function readManifests(text: string): Manifest[] {
  const documents = parseAllDocuments(text, { version: '1.1', merge: true })
  return documents.map((document) => document.toJS() as Manifest | null).filter((manifest) => manifest !== null)
}

export function podsOf(manifests: readonly Manifest[]): Pod[] {
  return manifests
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
    .map(({ kind, metadata, spec }) => {
      const { template } = spec as { template: { spec: Omit<Pod, 'kind' | 'name'> } }
      return { ...template.spec, kind, name: metadata.name }
    })
}

/** Names all that a rendering depends on: a copy with another one is out of date. */
export function hashOfChart(): string {
  const files = globSync(['Chart.yaml', 'values.yaml', 'values.schema.json', 'templates/*', 'ci/*'], { cwd: chart })
  const hash = createHash('sha256')
  for (const file of files.toSorted()) {
    hash.update(`${file}\0${readFileSync(path.join(chart, file), 'utf8')}\0`)
  }
  return hash.digest('hex')
}

export interface ComposeService {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string | number>>
  readonly healthcheck?: unknown
  readonly read_only?: boolean
  readonly stop_grace_period?: string
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>
}

export function readCompose(): ComposeFile {
  return parse(read('deploy/compose.yaml'), { merge: true }) as ComposeFile
}

/** What a line of a unit may hold: some names stand there more than once. */
export function readUnit(name: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of read(`deploy/systemd/${name}`).split('\n')) {
    const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? []
    if (key !== undefined) found.set(key, [...(found.get(key) ?? []), value])
  }
  return found
}

export const UNITS = globSync('*.service', { cwd: path.join(project, 'deploy/systemd') }).toSorted()

export function readImage() {
  const { stages } = readDockerfile(read('deploy/Dockerfile'))
  const last = stages.at(-1)
  const texts = (word: string) => (last?.instructions ?? []).filter((found) => found.word === word).map((f) => f.text)
  const [health = ''] = texts('HEALTHCHECK')
  return {
    stages,
    user: texts('USER').at(-1) ?? '',
    env: Object.assign({}, ...texts('ENV').map(readPairs)) as Record<string, string>,
    ports: texts('EXPOSE').flatMap((text) => text.split(' ').map(Number)),
    command: [...readCommand(texts('ENTRYPOINT').at(-1) ?? '[]'), ...readCommand(texts('CMD').at(-1) ?? '[]')],
    healthCommand: readCommand(health.slice(health.indexOf('['))),
  }
}
