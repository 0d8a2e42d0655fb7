/**
 * Releases as a builder leaves them, with the fake ComfyUI in place of a built one: folders with an interpreter and a `main.py` each, from
 * which real processes are started. Every release writes down in a file of its own what it has run, so that a test can tell which did.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ReleasesHere } from '../../../src/compose/engines/open-released.ts'
import type { Staging } from '../../../src/domain/environments/builder.ts'
import type { ExecutionNews, FakeOptions } from '../engines/fake-comfyui/fake-options.ts'

const MAIN = fileURLToPath(new URL('../engines/fake-comfyui/main.ts', import.meta.url))

export interface FakeRelease {
  readonly id: string
  readonly version: number
  readonly buildId: string
  readonly accountId: string
  /** What it has begun and ended, over all its processes. */
  news(): ExecutionNews[]
  /** Which processes were started from it. */
  pids(): number[]
}

interface NewRelease extends Pick<FakeOptions, 'nodeMs' | 'without'> {
  /** Of a release that an account has cut; left out: one that only deployments know. */
  readonly id?: string
  readonly version: number
  readonly buildId?: string
  readonly accountId: string
  /** It ends at once, as one whose pack cannot be imported. */
  readonly isBroken?: boolean
}

export interface FakeReleases {
  readonly here: ReleasesHere
  add(release: NewRelease): FakeRelease
  remove(id: string): void
  /** It is on its way onto this machine, so far; null: it is here. */
  stage(id: string, staging: Staging | null): void
}

export function createFakeReleases(
  folder: string,
  mayDeploy: (accountId: string) => boolean = () => true,
  /** What engines of the service itself run on. */
  targets: ReleasesHere['targets'] = [{ os: 'linux', gpu: 'cpu' }],
): FakeReleases {
  const all = new Map<string, FakeRelease & { readonly path: string }>()
  const coming = new Map<string, Staging>()
  const here: ReleasesHere = {
    source: {
      async find(accountId, id) {
        const release = all.get(id)
        if (release?.accountId !== accountId) return null
        return { id, buildId: release.buildId, version: release.version, whyNot: () => null, sizeBytes: 1000 }
      },
    },
    async find(id) {
      const path = coming.has(id) ? undefined : all.get(id)?.path
      return path === undefined
        ? null
        : { python: join(path, 'venv/bin/python'), comfyui: join(path, 'ComfyUI'), isForCpu: true }
    },
    bring: async (_account, id) =>
      coming.has(id)
        ? { place: 'coming', staging: coming.get(id) }
        : all.has(id)
          ? { place: 'here' }
          : { place: 'gone', reason: 'the folder of this release is not on this machine' },
    mayDeploy,
    targets,
  }
  return {
    here,
    add({ version, buildId = 'build-1', id = `rel-${buildId}-${version}`, accountId, isBroken = false, ...options }) {
      const path = join(folder, id)
      const log = join(path, 'log')
      const pids = join(path, 'pids')
      writeFolder(path, isBroken ? brokenPython() : fakePython({ options, log, pids }))
      const read = (file: string) =>
        existsSync(file)
          ? readFileSync(file, 'utf8')
              .split('\n')
              .filter((line) => line !== '')
          : []
      const release = {
        ...{ id, version, buildId, accountId, path },
        news: () => read(log).map((line) => JSON.parse(line) as ExecutionNews),
        pids: () => read(pids).map(Number),
      }
      all.set(id, release)
      return release
    },
    remove: (id) => void all.delete(id),
    stage: (id, staging) => void (staging === null ? coming.delete(id) : coming.set(id, staging)),
  }
}

function writeFolder(path: string, python: string): void {
  mkdirSync(join(path, 'venv/bin'), { recursive: true })
  mkdirSync(join(path, 'ComfyUI'), { recursive: true })
  writeFileSync(join(path, 'ComfyUI/main.py'), '')
  writeFileSync(join(path, 'venv/bin/python'), python)
  chmodSync(join(path, 'venv/bin/python'), 0o755)
}

/** Of the words that ComfyUI is given the fake server needs its port alone. */
function fakePython({ options, log, pids }: { options: object; log: string; pids: string }): string {
  const words = ['--options', JSON.stringify(options), '--log', log].map((word) => `'${word}'`).join(' ')
  return `#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = --port ]; then port=$2; fi; shift; done
echo $$ >> '${pids}'
exec '${process.execPath}' '${MAIN}' --port "$port" ${words}
`
}

function brokenPython(): string {
  return '#!/bin/sh\necho "ImportError: no module named sparkle" >&2\nexit 1\n'
}
