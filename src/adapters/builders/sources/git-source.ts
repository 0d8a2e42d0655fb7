/**
 * Files of a commit, from a git repository. Repositories are kept as mirrors, so that a commit is fetched once. An address that
 * came from outside must be https to a public host, or of an origin that the operator lists: it is resolved and judged here, and git
 * connects to what was judged, follows no redirect, asks for no password, and runs no hook, filter or helper.
 */
import { createHash } from 'node:crypto'
import { mkdir, realpath, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { takeLock } from '../../../../lib/files/file-lock.ts'
import { walkTree } from '../../../../lib/files/file-tree.ts'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { isInnerAddress, isPublicAddress, type Network } from '../../../../lib/outbound/network.ts'
import { BuildFailure } from '../../../domain/environments/builder.ts'
import { failureOf, run, type Step } from '../workshop.ts'

interface GitAddress {
  /** As it is told in the log and in failures. */
  readonly shown: string
  /** Further settings of git, such as the addresses that were judged. */
  readonly settings: readonly string[]
  readonly scheme: 'https' | 'http' | 'file'
  readonly url: string
}

const COMMIT = /^[0-9a-f]{40}$/
// What git takes as a name, without what it would read as an option or as an expression.
const REF = /^(?![-./])(?!.*(?:\.\.|@\{|\/\/|\.lock$))[\w./+-]{1,200}$/
const PATH = /^\/[\w.~+/-]{1,500}$/
const MAX_FETCH_MS = 1_800_000

/** Throws BuildFailure. `origins`: those of the operator, which may be plain http and lie in a private network. */
export async function judgeAddress(
  text: string,
  { network, origins, what }: { readonly network: Network; readonly origins: readonly string[]; readonly what: string },
): Promise<GitAddress> {
  const refuse = (problem: string) => new BuildFailure('freeze', `${what}: its repository ${problem}`)
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw refuse('must have an https address, such as https://github.com/<owner>/<name>')
  if (url.username !== '' || url.password !== '')
    throw refuse(
      'has a user name or password in its address; leave it out and upload the pack as a zip if its repository is private',
    )
  if (url.search !== '' || url.hash !== '' || !PATH.test(url.pathname))
    throw refuse('has an address with more than a host and a path; give the address that `git clone` takes')
  const common = { shown: `${url.host}${url.pathname}`, url: `${url.origin}${url.pathname}` }
  if (origins.includes(url.origin))
    return { ...common, settings: [], scheme: url.protocol === 'http:' ? 'http' : 'https' }
  if (url.protocol !== 'https:') throw refuse('must have an https address')
  const found = await network.resolve(url.hostname).catch(() => [])
  const allowed = found.filter(({ address }) => network.mayConnect(address)).map(({ address }) => address)
  if (allowed.length === 0)
    throw refuse(
      `is at ${url.hostname}, which leads to no public address; correct it, or have the operator list its origin`,
    )
  const addresses = allowed.map((address) => (address.includes(':') ? `[${address}]` : address)).join(',')
  return {
    ...common,
    scheme: 'https',
    settings: [`http.curloptResolve=${url.hostname}:${url.port || 443}:${addresses}`],
  }
}

/** For what the operator names: any address or folder. */
export function ownAddress(text: string): GitAddress {
  const url = URL.parse(text)
  const scheme = url?.protocol === 'https:' ? 'https' : url?.protocol === 'http:' ? 'http' : 'file'
  return { shown: url === null ? text : `${url.host}${url.pathname}`, settings: [], scheme, url: text }
}

export function mayReachInner(address: string): boolean {
  return isPublicAddress(address) || isInnerAddress(address)
}

interface Wanted {
  /** Of the pack or of ComfyUI, for failures. */
  readonly what: string
  /** A branch, a tag or a commit; null: the default branch. */
  readonly ref: string | null
}

/** Writes the files of the commit into `into`, which exists and is empty. Resolves with the commit. Throws BuildFailure. */
export async function checkOut(
  step: Step,
  address: GitAddress,
  { what, ref, into }: Wanted & { readonly into: string },
): Promise<string> {
  if (ref !== null && !REF.test(ref))
    throw new BuildFailure('freeze', `${what}: ${JSON.stringify(ref)} is no name of a branch, tag or commit`)
  const { shop, signal } = step
  const key = createHash('sha256').update(address.url).digest('hex').slice(0, 32)
  const mirror = join(shop.root, 'git', `${key}.git`)
  await mkdir(join(shop.root, 'locks'), { recursive: true })
  using _lock = await takeLock(join(shop.root, 'locks', `git-${key}.lock`), signal)
  const git = createGit(step, address, mirror)
  const commit = ref !== null && COMMIT.test(ref) ? ref : await findCommit(git, address, { what, ref })
  await bring(git, { what, address, commit, mirror, say: step.say })
  const index = join(step.scratch, `index-${key}`)
  const written = await git(['--work-tree', into, 'checkout', '--force', commit, '--', '.'], { GIT_INDEX_FILE: index })
  await rm(index, { force: true })
  if (written.code !== 0) throw failureOf('freeze', `${what}: its files at ${commit} cannot be written`, written)
  await refuseLinksOut(into, what)
  return commit
}

type Git = (words: readonly string[], env?: Readonly<Record<string, string>>) => ReturnType<typeof run>

function createGit(step: Step, address: GitAddress, mirror: string): Git {
  const settings = [
    ...['protocol.allow=never', `protocol.${address.scheme}.allow=always`, 'safe.directory=*'],
    ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'gc.auto=0', 'credential.helper=', 'core.askPass='],
    ...['http.followRedirects=false', 'http.lowSpeedLimit=1000', 'http.lowSpeedTime=60', ...address.settings],
  ].flatMap((setting) => ['-c', setting])
  const env = {
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_LFS_SKIP_SMUDGE: '1',
  }
  return (words, more = {}) =>
    run(step, ['git', ...settings, '--git-dir', mirror, ...words], {
      ...{ cwd: step.scratch, env: { ...env, ...more }, isQuiet: true, isTrusted: true, maxMs: MAX_FETCH_MS },
    })
}

async function findCommit(git: Git, address: GitAddress, { what, ref }: Wanted): Promise<string> {
  const names = ref === null ? ['HEAD'] : [`refs/tags/${ref}^{}`, `refs/tags/${ref}`, `refs/heads/${ref}`, ref]
  const listed = await git(['ls-remote', '--', address.url, ...names])
  if (listed.code !== 0) throw unreachable(what, address, listed)
  const found = new Map(
    listed.stdout
      .split('\n')
      .map((line) => line.split('\t') as [string, string])
      .map(([commit, name]) => [name, commit]),
  )
  const commit = names.map((name) => found.get(name)).find((each) => each !== undefined)
  if (commit !== undefined && COMMIT.test(commit)) return commit
  throw new BuildFailure(
    'freeze',
    `${what}: ${address.shown} has no branch or tag ${ref ?? 'HEAD'}; a commit is given with all its 40 digits`,
  )
}

function unreachable(what: string, address: GitAddress, ran: Parameters<typeof failureOf>[2]): BuildFailure {
  return failureOf(
    'freeze',
    `${what}: ${address.shown} cannot be read; check that it exists, is public and has not moved`,
    ran,
  )
}

interface Bringing {
  readonly what: string
  readonly address: GitAddress
  readonly commit: string
  readonly mirror: string
  say(line: string): void
}

async function bring(git: Git, { what, address, commit, mirror, say }: Bringing): Promise<void> {
  const has = async () => (await git(['cat-file', '-e', `${commit}^{tree}`])).code === 0
  if (await has()) return
  say(`${what}: fetching ${commit} from ${address.shown}`)
  const start = async () => {
    await mkdir(mirror, { recursive: true })
    await git(['init', '--quiet', '--bare'])
  }
  await start()
  // Not every server gives a single commit, and a fetch that was killed may have left a mirror that takes none.
  await git(['fetch', '--quiet', '--no-tags', '--depth=1', '--', address.url, commit])
  if (await has()) return
  await rm(mirror, { recursive: true, force: true })
  await start()
  const fetched = await git([
    'fetch',
    '--quiet',
    '--',
    address.url,
    '+refs/heads/*:refs/heads/*',
    '+refs/tags/*:refs/tags/*',
  ])
  if (await has()) return
  if (fetched.code !== 0) throw unreachable(what, address, fetched)
  throw new BuildFailure(
    'freeze',
    `${what}: ${address.shown} has no commit ${commit}; it was perhaps never pushed, or removed`,
  )
}

/** Files are served and read through links: none may lead to what is not the pack's. */
export async function refuseLinksOut(folder: string, what: string): Promise<void> {
  const base = await realpath(folder)
  for await (const { path, kind } of walkTree(base)) {
    if (kind !== 'link') continue
    const real = await realpath(join(base, path)).catch(nullWhenMissing)
    if (real === null || !real.startsWith(base + sep))
      throw new BuildFailure(
        'freeze',
        `${what}: the link ${path} leads out of it, or nowhere; replace it by what it leads to`,
      )
  }
}
