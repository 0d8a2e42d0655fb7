/** Batches and lists of images. CreateList is with the plain values, MergeTextLists with the text nodes. */
import type { EngineNode } from '../../node/define-node.ts'
import { batchImages, imageBatch, imageFromBatch, rebatchImages, repeatImageBatch } from './image-batches.ts'
import { loadImageDataSetFromFolder, saveImageDataSetToFolder } from './image-folders.ts'
import { imageDeduplication, imageGrid, mergeImageLists, shuffleDataset } from './image-lists.ts'

export const batchesNodes: readonly EngineNode[] = [
  imageBatch,
  batchImages,
  repeatImageBatch,
  imageFromBatch,
  rebatchImages,
  imageDeduplication,
  imageGrid,
  shuffleDataset,
  mergeImageLists,
  loadImageDataSetFromFolder,
  saveImageDataSetToFolder,
]
