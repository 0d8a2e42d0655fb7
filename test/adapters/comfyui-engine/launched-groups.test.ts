/** Launched processes that outlive a service which was killed with their keepers are ended at the next start, and nobody else is. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { endLeftGroups, rememberGroup } from '../../../src/adapters/engines/comfyui/launch/launched-groups.ts'

interface Launched extends AsyncDisposable {
  readonly folder: string
  readonly child: ChildProcess
  /** As if the service that launched it had gone. */
  change(act: (group: Wire) => unknown): Promise<void>
  hasEnded(): boolean
}

interface Wire {
  machine: string
  owner: { pid: number; startedAt: string }
  keeper: { pid: number; startedAt: string }
  engine: { pid: number; startedAt: string } | null
}

const GONE = { pid: 2 ** 22 - 1, startedAt: '1' }

async function launch(): Promise<Launched> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-launched-'))
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
  await once(child, 'spawn')
  const pid = child.pid ?? 0
  rememberGroup(folder, pid).started(pid)
  return {
    folder,
    child,
    async change(act) {
      const [name] = await readdir(folder)
      const file = join(folder, name ?? '')
      const group = JSON.parse(await readFile(file, 'utf8'))
      act(group)
      await writeFile(file, JSON.stringify(group))
    },
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

describe('launched processes', {
  skip: process.platform !== 'linux' && 'only Linux tells what they are known by',
}, () => {
  test('that a service left behind are ended, with all of their group', async () => {
    await using launched = await launch()
    await launched.change((group) => Object.assign(group, { owner: GONE }))
    const exited = once(launched.child, 'exit')
    assert.deepEqual(endLeftGroups(launched.folder), [launched.child.pid])
    assert.deepEqual(await exited, [null, 'SIGKILL'])
    assert.deepEqual(await readdir(launched.folder), [])
  })

  const spared: Record<string, { readonly act: (group: Wire) => unknown; readonly isKept?: true }> = {
    'of a service that lives': { act: () => {}, isKept: true },
    'whose numbers others have by now': {
      act: (group) => {
        const other = { ...group.keeper, startedAt: '1' }
        Object.assign(group, { owner: GONE, keeper: other, engine: other })
      },
    },
    'of another boot, or another machine': {
      act: (group) => Object.assign(group, { owner: GONE, machine: 'another' }),
    },
    'that are written down wrong': { act: (group) => Object.assign(group, { owner: GONE, keeper: { pid: -1 } }) },
  }
  for (const [what, { act, isKept = false }] of Object.entries(spared)) {
    test(`${what} are left alone`, async () => {
      await using launched = await launch()
      await launched.change(act)
      assert.deepEqual(endLeftGroups(launched.folder), [])
      assert.equal((await readdir(launched.folder)).length, isKept ? 1 : 0)
      assert.ok(!launched.hasEnded())
      process.kill(launched.child.pid ?? 0, 0)
    })
  }

  test('are forgotten when they end, and a folder that is not there remembers nobody', async () => {
    await using launched = await launch()
    rememberGroup(launched.folder, launched.child.pid ?? 0).ended()
    assert.deepEqual(await readdir(launched.folder), [])
    assert.deepEqual(endLeftGroups(join(launched.folder, 'nowhere')), [])
  })
})
