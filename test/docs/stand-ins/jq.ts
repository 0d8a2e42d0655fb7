/** As much of jq as the pages use, for machines that have none: `.a.b[0].c[]`, several of them with commas, `{name: .path}`, `-r`. */
import { readFileSync } from 'node:fs'

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

const args = process.argv.slice(2)
const isRaw = args.includes('-r')
const [filter, file] = args.filter((arg) => !/^-/.test(arg))
const input = JSON.parse(readFileSync(file ?? 0, 'utf8')) as Json
for (const value of apply(filter, input)) {
  console.log(isRaw && typeof value === 'string' ? value : JSON.stringify(value, null, 2))
}

function apply(text: string, value: Json): Json[] {
  const object = /^\{(.*)\}$/.exec(text.trim())
  if (object === null) return text.split(',').flatMap((path) => follow(path.trim(), value))
  const members = object[1].split(',').map((member) => member.split(':').map((part) => part.trim()))
  return [Object.fromEntries(members.map(([name, path]) => [name, follow(path, value)[0]]))]
}

function follow(path: string, value: Json): Json[] {
  if (!/^(\.|(\.\w+|\[\d*\])+)$/.test(path)) throw new Error(`the stand-in for jq does not know ${path}`)
  let values = [value]
  for (const [, name, index] of path.matchAll(/\.(\w+)|\[(\d*)\]/g)) {
    values = values.flatMap((each) => step(each, name, index))
  }
  return values
}

function step(value: Json, name: string | undefined, index: string): Json[] {
  if (name !== undefined) return [(value as { readonly [name: string]: Json } | null)?.[name] ?? null]
  const list = value as readonly Json[]
  return index === '' ? [...list] : [list[Number(index)] ?? null]
}
