import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { image } from '../../node/input-kinds.ts'
import { ofType } from '../../node/value-kinds.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import { previewImages } from './previews.ts'
import { hidden, madeFromTexts } from './saving.ts'

export const imageCompare = defineNode({
  classType: 'ImageCompare',
  displayName: 'Compare Images',
  category: 'image',
  description: 'Shows two pictures side by side for comparison.',
  style: 'schema',
  experimental: true,
  required: { compare_view: ofType('IMAGECOMPARE', { socketless: true }) },
  optional: { image_a: image({}), image_b: image({}) },
  hidden,
  outputs: [],
  isOutputNode: true,
  cost: ({ image_a: a, image_b: b }) => costOf((a?.data.length ?? 0) + (b?.data.length ?? 0)),
  async run({ image_a: a, image_b: b }, context) {
    const texts = madeFromTexts(context)
    const show = async (images: Tensor | undefined, stem: string) =>
      images === undefined ? [] : previewImages(images, { stem, texts }, context)
    const report = { a_images: await show(a, 'comfy.compare.a'), b_images: await show(b, 'comfy.compare.b') }
    return { outputs: [], report }
  },
})
