/**
 * What of its base image the program uses: the C and C++ libraries, a user, certificates and a folder for temporary files. Taken from
 * this machine; a library that the base image does not have is an error, because there the program would not start.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** The libraries of `cc-debian12`: glibc, libgcc and libstdc++. */
const BASE_LIBRARIES = /^(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so\.\d+$/

const FILES = {
  'etc/passwd': 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnonroot:x:65532:\n',
  'etc/nsswitch.conf': 'hosts: files dns\n',
  'etc/hosts': '127.0.0.1 localhost\n::1 localhost\n',
}

/** The names of the libraries that were put in. */
export function addBase(root: string): string[] {
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  for (const name of ['tmp', 'proc', 'dev', 'data']) mkdirSync(path.join(root, name), { recursive: true })
  const certificates = '/etc/ssl/certs/ca-certificates.crt'
  if (existsSync(certificates)) addFile(root, certificates)
  const binaries = ['usr/local/bin/node', ...globSync('app/node_modules/**/*.{node,so,so.*}', { cwd: root })]
  const needed = new Set(binaries.flatMap((name) => findLibraries(path.join(root, name), root)))
  const missing = [...needed].filter((file) => !BASE_LIBRARIES.test(path.basename(file)))
  if (missing.length > 0) throw new Error(`the base image has no ${missing.join(', ')}`)
  for (const file of needed) addFile(root, file)
  return [...needed].map((file) => path.basename(file)).toSorted()
}

/** What a binary is linked with, except for what the packages bring along themselves. */
function findLibraries(file: string, root: string): string[] {
  const { stdout } = spawnSync('ldd', [file], { encoding: 'utf8' })
  const absent = /(\S+) => not found/.exec(stdout)
  if (absent !== null) throw new Error(`${path.relative(root, file)} needs ${absent[1]}, which is not there`)
  const found = [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, name]) => name)
  return found.filter((name) => !name.startsWith(root))
}

function addFile(root: string, file: string): void {
  const target = path.join(root, file)
  mkdirSync(path.dirname(target), { recursive: true })
  copyFileSync(realpathSync(file), target)
}
