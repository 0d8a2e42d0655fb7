/** A workflow for the built-in engine that writes a text on a small picture, and what its author says of it. */
import { node } from '../clients/checked-client.ts'

export function card(text: string, more: object = {}) {
  return {
    '1': node('EmptyImage', { width: 64, height: 32, batch_size: 1, color: 2105376 }),
    '2': {
      ...node('TextOverlay', {
        ...{ images: ['1', 0], text, font_size: 8, color: '#ffffff', position: 'top', align: 'center', outline: false },
        ...more,
      }),
      _meta: { title: '$headline' },
    },
    '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'card' }),
  }
}

export const CARD_YAML = `title: A card
description: Says something.
only: true
inputs:
  headline: { description: What the card says., max_length: 20, required: true }
  width: { from: 1.width, maximum: 512 }
  align: 2.align
  outline: 2.outline
`

/** A picture of the caller, with a text on it. */
export function stamp() {
  return {
    '1': node('LoadImage', { image: 'example.png' }),
    '2': node('ImageInvert', { image: ['1', 0] }),
    '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'inverted' }),
  }
}
