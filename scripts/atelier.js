#!/usr/bin/env node
/**
 * The `atelier` command. Plain JavaScript that Node 20 runs: it starts the real program (the sources in a checkout, the build in an
 * installed package) with a Node that can run it, hands signals through and ends as the program ended.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { findProgram, packedProgram } from './built-parts.js'
import { findNode, projectDirectory, REQUIRED_MAJOR } from './local-node.js'

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGUSR2: 12, SIGTERM: 15 }

const sources = path.join(projectDirectory, 'src', 'bin.ts')
const isCheckout = existsSync(sources)
const program = isCheckout ? findProgram(projectDirectory) : packedProgram(projectDirectory)

// As many helper threads for the runtime as there are cores beside the first, instead of four; and none that waits for a debugger.
const NODE_FLAGS = ['--v8-pool-size=0', '--disable-sigusr1']

function fail(message) {
  process.stderr.write(`atelier: ${message}\n`)
  process.exitCode = 1
}

function launch(node) {
  const child = spawn(node, [...NODE_FLAGS, program, ...process.argv.slice(2)], { stdio: 'inherit' })
  // A terminal sends Ctrl-C to both processes; the program must still get a signal that was sent to this one alone,
  // and this one must outlive it to report how it ended.
  const fromTerminal = process.stdin.isTTY === true
  for (const signal of FORWARDED) {
    process.on(signal, () => {
      if (!(fromTerminal && signal === 'SIGINT')) child.kill(signal)
    })
  }
  child.on('error', (error) => fail(`cannot start ${node}: ${error.message}`))
  child.on('exit', (code, signal) => {
    process.exit(code ?? 128 + (SIGNAL_NUMBERS[signal] ?? 0))
  })
}

if (isCheckout && !existsSync(path.join(projectDirectory, 'node_modules'))) {
  fail(`its packages are not installed. Run \`npm ci\` in ${projectDirectory}, then try again.`)
} else {
  const node = findNode()
  if (node === null) {
    fail(
      `needs Node ${REQUIRED_MAJOR} or newer, and this is ${process.version}. ` +
        (isCheckout ? `Run \`npm ci\` in ${projectDirectory} (on Linux it brings one along), or install` : 'Install') +
        ` Node ${REQUIRED_MAJOR}.`,
    )
  } else launch(node)
}
