/** Images shown beside a node while a workflow runs. */
import { encodePng } from '../../images/encode-png.ts'
import type { PngText } from '../../images/png-text.ts'
import type { MadeFile, NodeContext } from '../../node/node-context.ts'
import { type Tensor, viewOf } from '../../tensor/tensor.ts'
import { nameFiles, previewTarget } from './saving.ts'

const PREVIEW_LEVEL = 1

export interface PreviewOptions {
  /** Begins the name. */
  readonly stem?: string
  /** What the files remember. */
  readonly texts: PngText
}

/** Every image of the batch as a PNG in the temporary folder. */
export async function previewImages(
  images: Tensor,
  { stem, texts }: PreviewOptions,
  context: NodeContext,
): Promise<MadeFile[]> {
  const view = viewOf(images)
  const target = previewTarget(context, { extension: 'png', contentType: 'image/png' }, stem)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < view.batch; index++) {
    encoded.push(await encodePng(view, { index, level: PREVIEW_LEVEL, texts, checkpoint: context.checkpoint }))
  }
  return nameFiles(encoded, target, context)
}
