/**
 * Runs before `npm start`, `npm test`, `npm run demo` and `npm run bench`: installs the packages when they are missing or do
 * not match package-lock.json, then makes sure that a Node which can run the sources exists. Plain JavaScript that Node 20
 * runs. Says what it does; does nothing and says nothing when all is in place. Several may run at once.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import {
  builtProgram,
  digestClient,
  digestConsole,
  digestProgram,
  isClientBuilt,
  isConsoleBuilt,
} from './built-parts.js'
import { bundledNodePath, findNode, projectDirectory, REQUIRED_MAJOR } from './local-node.js'

const lockfile = path.join(projectDirectory, 'package-lock.json')
// npm writes this one last, so a broken install does not have it.
const installedList = path.join(projectDirectory, 'node_modules', '.package-lock.json')
const stampFile = path.join(projectDirectory, 'node_modules', '.atelier-setup.json')

const say = (text) => process.stderr.write(`${text}\n`)

function currentStamp() {
  const hash = createHash('sha256').update(readFileSync(lockfile)).digest('hex')
  return JSON.stringify({ lockfile: hash, platform: `${process.platform}-${process.arch}` })
}

function readOr(file, otherwise) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return otherwise
    throw error
  }
}

/** Compares what lies in node_modules with the lockfile: dates say nothing after a checkout or an `npm install`. */
function installedMatchesLockfile() {
  const installedText = readOr(installedList, null)
  if (installedText === null) return false
  const installed = JSON.parse(installedText).packages
  const wanted = JSON.parse(readFileSync(lockfile, 'utf8')).packages
  for (const [name, entry] of Object.entries(wanted)) {
    if (name === '' || (entry.optional && installed[name] === undefined)) continue
    if (installed[name]?.version !== entry.version || installed[name]?.integrity !== entry.integrity) return false
  }
  const bundled = bundledNodePath()
  return bundled === null || existsSync(bundled)
}

/** True when the packages are in place; leaves a stamp so that the next look costs one small read. */
function isReady() {
  const stamp = currentStamp()
  if (readOr(stampFile, '') === stamp && existsSync(installedList)) return true
  if (!installedMatchesLockfile()) return false
  writeFileSync(stampFile, stamp)
  return true
}

const TELL_EVERY_MS = 5000

/** How many packages have been unpacked: npm makes all folders first, and itself says nothing until it is done. */
function countPackages() {
  const modules = path.join(projectDirectory, 'node_modules')
  const namesIn = (folder) => (existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : [])
  return namesIn(modules)
    .flatMap((name) => (name.startsWith('@') ? namesIn(path.join(modules, name)).map((own) => `${name}/${own}`) : name))
    .filter((name) => existsSync(path.join(modules, name, 'package.json'))).length
}

/** Ends as the program ended, and says now and then how far it is. */
function runTelling(command, args, options) {
  const total = Object.keys(JSON.parse(readFileSync(lockfile, 'utf8')).packages).length - 1
  const startedAt = Date.now()
  return new Promise((resolve) => {
    const child = spawn(command, args, options)
    const timer = setInterval(() => {
      const seconds = Math.round((Date.now() - startedAt) / 1000)
      try {
        say(`  ${seconds} s: ${countPackages()} of at most ${total} packages are in place`)
      } catch {
        // npm takes folders away while they are counted.
      }
    }, TELL_EVERY_MS)
    const end = (ended) => {
      clearInterval(timer)
      resolve(ended)
    }
    child.on('error', (error) => end({ status: null, signal: null, error }))
    child.on('close', (status, signal) => end({ status, signal }))
  })
}

async function install() {
  const why = existsSync(path.join(projectDirectory, 'node_modules')) ? 'do not match package-lock.json' : 'are missing'
  say(`Setting up: the packages ${why}; running \`npm ci\` (once: about 600 MB on disk, and a minute or less) ...`)
  const startedAt = Date.now()
  // Nothing here needs an install script. Optional packages carry the runtime, so an inherited "omit" must not drop them.
  // Below `error` npm only repeats that its own Node is older than ours, which is why this script exists.
  const options = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--loglevel=error']
  // The Node that runs npm, not the one inside node_modules: `npm ci` deletes that while it works.
  const { npm_node_execpath: outerNode, npm_execpath: npmScript } = process.env
  const viaNpm = Boolean(outerNode && npmScript && existsSync(outerNode) && !outerNode.startsWith(projectDirectory))
  const run = { cwd: projectDirectory, stdio: ['ignore', 2, 2] }
  const result = viaNpm
    ? await runTelling(outerNode, [npmScript, ...options], run)
    : await runTelling('npm', options, { ...run, shell: process.platform === 'win32' })
  if (result.status !== 0) {
    const reason = result.error?.message ?? `exit code ${result.status ?? result.signal}`
    say(
      `Setting up failed: \`npm ci\` ended with ${reason}. Mend what it reports above (often: no network), then try again.`,
    )
    return false
  }
  say(`Set up in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`)
  return true
}

// The lock lies outside node_modules, which `npm ci` deletes, and outside the checkout, which must stay clean.
function lockPath() {
  const projectHash = createHash('sha256').update(realpathSync(projectDirectory)).digest('hex').slice(0, 16)
  return path.join(tmpdir(), `atelier-setup-${process.getuid?.() ?? 'user'}-${projectHash}.lock`)
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function tryLock(file) {
  // Written aside and linked: the lock never exists without its owner's number in it.
  const aside = `${file}.${process.pid}`
  writeFileSync(aside, String(process.pid))
  try {
    linkSync(aside, file)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    unlinkSync(aside)
  }
}

/** Takes a dead owner's lock away. Renaming lets only one of several breakers win. */
function breakLock(file, deadOwner) {
  const aside = `${file}.broken.${process.pid}`
  try {
    renameSync(file, aside)
    if (readFileSync(aside, 'utf8') !== deadOwner) linkSync(aside, file)
    unlinkSync(aside)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
}

function waitBriefly() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
}

/** Runs `work` while no other set-up of this checkout does; another's finished work makes ours needless. */
async function whileLocked(work) {
  const file = lockPath()
  let told = false
  while (!tryLock(file)) {
    const owner = readOr(file, '')
    if (owner !== '' && !isAlive(Number(owner))) breakLock(file, owner)
    else {
      if (!told) say(`Another set-up of this checkout is running (process ${owner}); waiting for it ...`)
      told = true
      waitBriefly()
    }
  }
  try {
    return await work()
  } finally {
    unlinkSync(file)
  }
}

function explainMissingNode() {
  const platform = `${process.platform}-${process.arch}`
  const brought =
    bundledNodePath() === null ? `none is brought along for ${platform}` : 'the one brought along does not run here'
  say(
    `Atelier needs Node ${REQUIRED_MAJOR} or newer to run its TypeScript sources: this is ${process.version}, and ${brought}.\n` +
      `Install Node ${REQUIRED_MAJOR} (https://nodejs.org/en/download), make sure that \`node --version\` shows it, then try again.`,
  )
}

/** A service without its console still serves: what went wrong is said, and the start goes on. */
function buildConsole(node) {
  const digest = digestConsole(projectDirectory)
  if (digest === null || isConsoleBuilt(projectDirectory, digest)) return
  const script = path.join(projectDirectory, 'scripts', 'build-console.ts')
  const result = spawnSync(node, [script], { cwd: projectDirectory, stdio: ['ignore', 2, 2] })
  if (result.status !== 0) say('The console could not be built (see above); the service starts without it.')
}

function buildClient(node) {
  const digest = digestClient(projectDirectory)
  if (digest === null || isClientBuilt(projectDirectory, digest)) return
  const script = path.join(projectDirectory, 'scripts', 'build-client.ts')
  const result = spawnSync(node, [script], { cwd: projectDirectory, stdio: ['ignore', 2, 2] })
  if (result.status !== 0) say('The clients could not be built (see above); the service starts without them.')
}

/** The sources run as they are, too; they only need longer to start. */
function buildProgram(node) {
  const digest = digestProgram(projectDirectory)
  if (digest === null || existsSync(builtProgram(projectDirectory, digest))) return
  const script = path.join(projectDirectory, 'scripts', 'build-program.ts')
  const result = spawnSync(node, [script], { cwd: projectDirectory, stdio: ['ignore', 2, 2] })
  if (result.status !== 0) say('The program could not be built (see above); it starts from its sources.')
}

async function main() {
  if (!isReady()) {
    const installed = await whileLocked(async () => {
      if (isReady()) return true
      if (!(await install())) return false
      writeFileSync(stampFile, currentStamp())
      return true
    })
    if (!installed) return 1
  }
  const node = findNode()
  if (node === null) {
    explainMissingNode()
    return 1
  }
  buildConsole(node)
  buildClient(node)
  // `npm test` builds it beside its checks; tests that are named start at once, from the sources if need be.
  if (process.env.npm_lifecycle_event !== 'pretest') buildProgram(node)
  return 0
}

process.exitCode = await main()
