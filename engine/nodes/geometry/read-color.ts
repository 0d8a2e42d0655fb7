/** Colours as nodes are given them: `#rgb`, `#rgba`, `#rrggbb` or `#rrggbbaa`, and the plainest names. */
import { pythonReprText } from '../../../lib/python/text.ts'
import { NodeError } from '../../node/node-error.ts'

const HEX = /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i

const NAMES: Readonly<Record<string, string>> = {
  black: '#000000',
  silver: '#c0c0c0',
  gray: '#808080',
  grey: '#808080',
  white: '#ffffff',
  maroon: '#800000',
  red: '#ff0000',
  purple: '#800080',
  magenta: '#ff00ff',
  green: '#008000',
  lime: '#00ff00',
  olive: '#808000',
  yellow: '#ffff00',
  orange: '#ffa500',
  navy: '#000080',
  blue: '#0000ff',
  teal: '#008080',
  cyan: '#00ffff',
}

/** Red, green, blue and opacity within 0..1. */
export function readColor(text: string): readonly [number, number, number, number] {
  const hex = Object.hasOwn(NAMES, text.toLowerCase()) ? NAMES[text.toLowerCase()] : text
  if (!HEX.test(hex)) {
    throw new NodeError('ValueError', `unknown color specifier: ${pythonReprText(text)}`)
  }
  const digits = hex.length <= 5 ? [...hex.slice(1)].map((digit) => digit + digit).join('') : hex.slice(1)
  const [red, green, blue, alpha] = `${digits}ff`.match(/../g) as RegExpMatchArray
  const share = (pair: string) => Number.parseInt(pair, 16) / 255
  return [share(red), share(green), share(blue), share(alpha)]
}
