/**
 * Builds the console's page, and the page of shared endpoints, into `console/dist`: scripts and styles with a digest in their names, compressed beside them, and a
 * manifest that is written last, so that a service which runs meanwhile sees either the build before or this one.
 * `--watch` builds again whenever a source changes.
 */
import { createHash } from 'node:crypto'
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { digestConsole } from './built-parts.js'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const home = path.join(project, 'console')
const dist = path.join(home, 'dist')
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const SETTLE_MS = 50

interface BuiltFile {
  readonly name: string
  readonly bytes: Buffer
}

interface Bundle {
  readonly entry: string
  /** Files that the entry needs before it can begin. */
  readonly needed: readonly string[]
  readonly files: readonly BuiltFile[]
  /** Names of the packages whose code is in them. */
  readonly packages: readonly string[]
}

// The innermost: a package may bring others along in a folder of its own.
const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//

/** Of what belongs together: what it needs itself is in the file of all. */
const APART = { minShareCount: 2, priority: 2, includeDependenciesRecursively: false }

/** Each page by itself: what strangers load has nothing of the console in it. */
async function bundle(entryFile: string, name: string): Promise<Bundle> {
  const bundled = await rolldown({
    input: path.join(home, 'src', entryFile),
    platform: 'browser',
    // What the bundler itself would choose for files that are divided so; nobody imports from the entry.
    preserveEntrySignatures: 'allow-extension',
    tsconfig: path.join(home, 'tsconfig.json'),
    treeshake: true,
  })
  const { output } = await bundled.generate({
    format: 'esm',
    minify: true,
    entryFileNames: `${name}-[hash].js`,
    chunkFileNames: '[name]-[hash].js',
    // What two pages share comes in one file: fewer requests than a file for each shared part.
    // What pages of the operator, or of money, share among themselves is not part of the first load of everybody.
    codeSplitting: {
      groups: [
        { name: 'operator', test: /console\/src\/(pages\/operator|api\/admin)/, ...APART },
        { name: 'money', test: /console\/src\/(pages\/account\/(usage|statement)|api\/(account|money)\.)/, ...APART },
        { name: 'shared', minShareCount: 2 },
      ],
    },
  })
  await bundled.close()
  const chunks = output.filter((part) => part.type === 'chunk')
  const entry = chunks.find(({ isEntry }) => isEntry)
  if (entry === undefined) throw new Error('the bundler made no entry')
  return {
    entry: entry.fileName,
    needed: entry.imports,
    files: chunks.map(({ fileName, code }) => ({ name: fileName, bytes: Buffer.from(code) })),
    packages: chunks.flatMap(({ moduleIds }) => moduleIds.flatMap((id) => PACKAGE.exec(id)?.[1] ?? [])),
  }
}

// What the page of a shared endpoint looks like: the parts of the console's looks that it uses, and its own.
const SHARE_STYLES = [
  ...['01-tokens.css', '02-base.css', '04-components.css', '06-media.css', '11-run.css', '14-endpoints.css'],
  'share/share.css',
]

/** Plain style sheets, one after the other. */
function joinStyles(name: string, files: readonly string[]): BuiltFile {
  const texts = files.map((file) => readFileSync(path.join(home, 'styles', file), 'utf8'))
  const text = texts
    .join('\n')
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\s*\n\s*/g, '\n')
    .trim()
  return withDigest(name, '.css', Buffer.from(text))
}

function withDigest(name: string, ending: string, bytes: Buffer): BuiltFile {
  const digest = createHash('sha256').update(bytes).digest('base64url').replaceAll(/[_-]/g, '').slice(0, 8)
  return { name: `${name}-${digest}${ending}`, bytes }
}

function compress(bytes: Buffer): { readonly gzip: Buffer; readonly brotli: Buffer } {
  const brotli = brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  })
  return { gzip: gzipSync(bytes, { level: 9 }), brotli }
}

/** A folder of its own first: of two builds at once each is whole, and the later one stays. */
const YOUNG_MS = 60_000

function write(files: readonly BuiltFile[], manifest: object): void {
  mkdirSync(dist, { recursive: true })
  const aside = mkdtempSync(path.join(home, 'dist-'))
  try {
    const place = (name: string, bytes: Buffer | string) => {
      writeFileSync(path.join(aside, name), bytes)
      renameSync(path.join(aside, name), path.join(dist, name))
    }
    for (const { name, bytes } of files) {
      const { gzip, brotli } = compress(bytes)
      place(name, bytes)
      place(`${name}.gz`, gzip)
      place(`${name}.br`, brotli)
    }
    place('manifest.json', `${JSON.stringify(manifest, null, 1)}\n`)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  const current = new Set(['manifest.json', ...files.flatMap(({ name }) => [name, `${name}.gz`, `${name}.br`])])
  for (const name of globSync('*', { cwd: dist })) {
    const file = path.join(dist, name)
    // What is young may be of another build that is under way, or of a page that was just opened.
    const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY)
    if (!current.has(name) && age > YOUNG_MS) rmSync(file, { force: true })
  }
}

async function build(): Promise<void> {
  const startedAt = performance.now()
  // Before the sources are read: whatever changes meanwhile makes the next start build again.
  const sources = digestConsole(project)
  const { entry, needed, files: scripts, packages } = await bundle('main.tsx', 'console')
  const share = await bundle('share/main.tsx', 'share')
  const style = joinStyles('console', globSync('*.css', { cwd: path.join(home, 'styles') }).sort())
  const shareStyle = joinStyles('share', SHARE_STYLES)
  const icon = withDigest('icon', '.svg', readFileSync(path.join(home, 'icon.svg')))
  const files = [...scripts, ...share.files, style, shareStyle, icon]
  const id = createHash('sha256')
    .update(
      files
        .map(({ name }) => name)
        .sort()
        .join(),
    )
    .digest('hex')
    .slice(0, 12)
  write(files, {
    build: id,
    sources,
    script: entry,
    needed,
    style: style.name,
    icon: icon.name,
    share: { script: share.entry, style: shareStyle.name },
    packages: [...new Set([...packages, ...share.packages])].sort(),
    files: Object.fromEntries(
      files.map(({ name }) => [
        name,
        { type: TYPES[path.extname(name)] ?? 'application/octet-stream', compressed: true },
      ]),
    ),
  })
  process.stderr.write(`The console was built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.\n`)
}

function buildAgainOnChange(): void {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<unknown> = Promise.resolve()
  const again = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = running.then(build).catch((error: Error) => process.stderr.write(`${error.message}\n`))
    }, SETTLE_MS)
  }
  for (const folder of ['src', 'styles']) watch(path.join(home, folder), { recursive: true }, again)
}

await build()
if (process.argv.includes('--watch')) buildAgainOnChange()
