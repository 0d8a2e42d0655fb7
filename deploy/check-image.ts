/**
 * `node deploy/check-image.ts`: what `docker build` and `docker run --read-only` would show, where there is no Docker. Runs the commands
 * of every stage of the Dockerfile, puts the image together, checks what is in it, and runs it as its user on a read-only root.
 * Linux, root, npm and some minutes; leaves nothing behind. Exits 1 when something is wrong.
 */
import { spawnSync } from 'node:child_process'
import { globSync, lstatSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildStages } from './image/build-stages.ts'
import { readCommand, readDockerfile, readPairs, type Stage } from './image/dockerfile.ts'
import { readConsole } from './image/read-console.ts'
import { type Image, mountReadOnly, runInside, serve } from './image/run-image.ts'
import { addBase } from './image/stand-in-base.ts'

const script = fileURLToPath(import.meta.url)
const project = path.dirname(path.dirname(script))
const MOST_MIB = 260
const TOKEN = 'a-token-for-this-check-only'
const GRAPH =
  '{"workflow":{"1":{"class_type":"PrimitiveString","inputs":{"value":"hello"}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}}'

let failures = 0
function check(what: string, isRight: boolean, detail = ''): void {
  if (!isRight) failures += 1
  console.log(`${isRight ? 'ok    ' : 'WRONG '} ${what}${detail === '' ? '' : `: ${detail}`}`)
}

/** Starts itself again in a mount namespace; what it mounted is gone before anything is removed. */
function checkInNamespace(): number {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    console.log('skipped: needs root on Linux, for a mount namespace and chroot')
    return 0
  }
  const work = mkdtempSync(path.join(tmpdir(), 'atelier-image-'))
  try {
    const args = ['--mount', '--propagation', 'private', process.execPath, script, work]
    return spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function toImage(root: string, stage: Stage): Image {
  const textOf = (word: string) => stage.instructions.findLast((found) => found.word === word)?.text ?? ''
  const env = Object.assign(
    {},
    ...stage.instructions.filter(({ word }) => word === 'ENV').map((e) => readPairs(e.text)),
  )
  return { root, user: textOf('USER'), env, entrypoint: readCommand(textOf('ENTRYPOINT')) }
}

function checkContents(root: string): void {
  const files = globSync('**/*', { cwd: root, withFileTypes: false }).map((name) => ({
    name,
    found: lstatSync(path.join(root, name)),
  }))
  const plain = files.filter(({ found }) => found.isFile())
  const own = plain.filter(({ name }) => !name.includes('node_modules/') && !/^(usr\/)?lib/.test(name))
  const sources = own.filter(({ name }) => /(\.test\.|\.ts$)/.test(name) && !name.endsWith('.d.ts'))
  check('no sources and no tests of ours', sources.length === 0, sources.map(({ name }) => name).join(', '))
  const special = plain.filter(({ found }) => (found.mode & 0o6000) !== 0)
  check('no file that changes its user', special.length === 0)
  const shells = plain.filter(({ name }) => /(^|\/)(sh|bash|npm|apt|apk)$/.test(name) && !name.includes('node_modules'))
  check('no shell and no package manager', shells.length === 0, shells.map(({ name }) => name).join(', '))
  const sizes = Object.entries(Object.groupBy(plain, ({ name }) => name.split('/').slice(0, 2).join('/')))
  for (const [name, members = []] of sizes) {
    const bytes = members.reduce((sum, { found }) => sum + found.size, 0)
    console.log(`         ${toMib(bytes).padStart(6)} MiB  ${name} (${members.length} files)`)
  }
  const total = plain.reduce((sum, { found }) => sum + found.size, 0)
  check(`smaller than ${MOST_MIB} MiB`, total < MOST_MIB * 2 ** 20, `${toMib(total)} MiB before compression`)
}

function toMib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function checkRun(image: Image, aliveCommand: readonly string[]): Promise<void> {
  const { version } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as { version: string }
  const told = runInside(image, [...image.entrypoint, '--version'])
  check('atelier --version', told.code === 0 && told.output === `${version}\n`, told.output.trim())
  const write = `require('node:fs').writeFileSync('/app/x', '')`
  const refused = runInside(image, ['/usr/local/bin/node', '-e', write])
  check('the root cannot be written', refused.code !== 0 && refused.output.includes('EROFS'))
  const bare = runInside(image, [...image.entrypoint, 'serve'])
  check('without a token the start is refused', bare.code === 2 && bare.output.includes('ATELIER_TOKEN'))
  const port = await freePort()
  const env = { ATELIER_TOKEN: TOKEN, ATELIER_PORT: String(port) }
  const away = runInside(image, aliveCommand, env)
  check('the health check fails while nothing answers', away.code === 1)
  const served = await serve(image, env)
  check(
    'serve is process 1, as the user of the image',
    served.status.innerPid === '1' && `${served.status.uid}:${served.status.uid}` === image.user,
    `uid ${served.status.uid}`,
  )
  const alive = runInside(image, aliveCommand, env)
  check('the health check passes', alive.code === 0, alive.output)
  const { page, missing } = await readConsole(`http://127.0.0.1:${port}`)
  check('the console opens, with all its files', page && missing.length === 0, missing.join(', '))
  const answer = await fetch(`http://127.0.0.1:${port}/api/v2/jobs`, {
    ...{
      method: 'POST',
      body: GRAPH,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    },
  })
  check('a job is taken', answer.status === 201, String(answer.status))
  const { id } = (await answer.json()) as { id: string }
  const stream = await fetch(`http://127.0.0.1:${port}/api/v2/jobs/${id}/events`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  check('and runs to its end', (await stream.text()).includes('succeeded'))
  const ended = await served.terminate()
  check('SIGTERM drains and ends it with 0', ended.code === 0 && ended.output.includes('drained'), String(ended.code))
}

async function checkHere(work: string): Promise<number> {
  const { stages } = readDockerfile(readFileSync(path.join(project, 'deploy/Dockerfile'), 'utf8'))
  const args = { TARGETARCH: process.arch === 'x64' ? 'amd64' : process.arch }
  const ignoreFile = path.join(project, 'deploy/Dockerfile.dockerignore')
  const root = buildStages(stages, { context: project, ignoreFile, work, args })
  const last = stages.at(-1)
  if (last === undefined) throw new Error('the Dockerfile has no stage')
  checkContents(root)
  check('needs no library that the base image lacks', true, addBase(root).join(' '))
  const image = toImage(root, last)
  const alive = last.instructions.find(({ word }) => word === 'HEALTHCHECK')?.text ?? ''
  mountReadOnly(image)
  await checkRun(image, readCommand(alive.slice(alive.indexOf('['))))
  console.log(failures === 0 ? 'the image is right' : `${failures} checks failed`)
  return failures === 0 ? 0 : 1
}

const work = process.argv.at(2)
process.exitCode = work === undefined ? checkInNamespace() : await checkHere(work)
