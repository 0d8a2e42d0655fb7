/**
 * Runs the built root as a container would: read-only, with /tmp and /data of its own, as the image's user and as process 1 of a
 * namespace.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { command, mountDevices } from './build-stages.ts'

export interface Image {
  readonly root: string
  readonly user: string
  readonly env: Readonly<Record<string, string>>
  readonly entrypoint: readonly string[]
}

/** From now on only /tmp and /data can be written. The latter is what a cluster gives: of root, and open to a group. */
export function mountReadOnly({ root, user }: Image): void {
  const [, gid] = user.split(':')
  command('mount', ['--bind', root, root])
  command('mount', ['-t', 'proc', 'proc', path.join(root, 'proc')])
  mountDevices(path.join(root, 'dev'))
  command('mount', ['-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', path.join(root, 'tmp')])
  command('mount', ['-t', 'tmpfs', '-o', `mode=2777,uid=0,gid=${gid}`, 'tmpfs', path.join(root, 'data')])
  command('mount', ['-o', 'remount,bind,ro', root])
}

function chrootArguments({ root, user }: Image, inside: readonly string[]): string[] {
  return [`--userspec=${user}`, root, ...inside]
}

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** A command of the image, run to its end. */
export function runInside(image: Image, inside: readonly string[], env: Record<string, string> = {}): Ended {
  const { status, stdout, stderr } = spawnSync('chroot', chrootArguments(image, inside), {
    ...{ encoding: 'utf8', timeout: 60_000, env: { PATH: process.env['PATH'] ?? '', ...image.env, ...env } },
  })
  return { code: status, output: `${stdout}${stderr}` }
}

export interface Served {
  /** Its number outside of the namespace. */
  readonly pid: number
  /** Its number inside, and the user that it runs as. */
  readonly status: { readonly innerPid: string; readonly uid: string }
  /** Sends SIGTERM to process 1 and waits for its end. */
  terminate(): Promise<Ended>
}

/** `serve` as process 1; resolves once it says where it listens. */
export async function serve(image: Image, env: Record<string, string>): Promise<Served> {
  const inside = chrootArguments(image, [...image.entrypoint, 'serve'])
  const child = spawn('unshare', ['--pid', '--fork', '--kill-child', 'chroot', ...inside], {
    ...{ env: { PATH: process.env['PATH'] ?? '', ...image.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  })
  const output = collect(child)
  const ended = once(child, 'exit') as Promise<[number | null]>
  const started = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => output.text().includes('is serving at') && resolve())
  })
  const early = ended.then(([code]) => Promise.reject(new Error(`serve ended with ${code}: ${output.text()}`)))
  await Promise.race([started, early])
  const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim())
  return {
    pid,
    status: readStatus(pid),
    async terminate() {
      process.kill(pid, 'SIGTERM')
      const [code] = await ended
      return { code, output: output.text() }
    },
  }
}

function readStatus(pid: number): Served['status'] {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const innerPid = /^NSpid:.*\s(\d+)$/m.exec(text)?.[1] ?? ''
  return { innerPid, uid: /^Uid:\s+(\d+)/m.exec(text)?.[1] ?? '' }
}

function collect(child: ChildProcess): { text(): string } {
  let all = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      all += text
    })
  }
  return { text: () => all }
}
