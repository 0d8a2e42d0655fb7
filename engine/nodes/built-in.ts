/**
 * Every node class that comes with the engine. A file of nodes exports one constant for each of its classes: a new class is in the
 * catalog as soon as it is exported. Here is also said which of them give the same bytes again.
 */
import type { EngineNode } from '../node/define-node.ts'
import { boundCpu } from '../python/text-limit.ts'
import * as audioFiles from './audio/audio-files.ts'
import * as combineAudio from './audio/combine-audio.ts'
import * as editAudio from './audio/edit-audio.ts'
import * as imageBatches from './batches/image-batches.ts'
import * as imageFolders from './batches/image-folders.ts'
import * as loadImage from './files/load-image.ts'
import * as saveFormats from './files/save-formats.ts'
import * as saveImage from './files/save-image.ts'
import * as adjustments from './filters/adjustments.ts'
import * as colors from './filters/colors.ts'
import * as neighbourhoodFilters from './filters/neighbourhood-filters.ts'
import * as boxes from './geometry/boxes.ts'
import * as cropImages from './geometry/crop-images.ts'
import * as resizeImages from './geometry/resize-images.ts'
import * as scaleImages from './geometry/scale-images.ts'
import * as stitchAndTile from './geometry/stitch-and-tile.ts'
import * as textOverlay from './geometry/text-overlay.ts'
import * as turnAndPad from './geometry/turn-and-pad.ts'
import * as latentArithmetic from './latents/latent-arithmetic.ts'
import * as latentBatches from './latents/latent-batches.ts'
import * as latents from './latents/latents.ts'
import * as transformLatents from './latents/transform-latents.ts'
import * as composite from './masks/composite.ts'
import * as masks from './masks/masks.ts'
import { runModel } from './run-model-node.ts'
import * as editSigmas from './sigmas/edit-sigmas.ts'
import * as schedulers from './sigmas/schedulers.ts'
import * as datasetTexts from './text/dataset-texts.ts'
import * as regexNodes from './text/regex-nodes.ts'
import * as showText from './text/show-text.ts'
import * as stringNodes from './text/string-nodes.ts'
import * as logicAndMaths from './values/logic-and-maths.ts'
import * as primitives from './values/primitives.ts'
import * as cutVideo from './video/cut-video.ts'
import * as makeVideo from './video/make-video.ts'
import * as saveVideo from './video/save-video.ts'

const isNode = (value: unknown): value is EngineNode =>
  typeof value === 'object' && value !== null && 'classType' in value && 'inputKinds' in value

function nodesOf(...modules: readonly object[]): readonly EngineNode[] {
  return modules.flatMap((module) => Object.values(module)).filter(isNode)
}

/** The classes of ComfyUI. */
export const BUILT_IN_NODES: readonly EngineNode[] = [
  ...nodesOf(loadImage, saveImage, saveFormats, imageBatches, imageFolders),
  ...nodesOf(scaleImages, resizeImages, cropImages, turnAndPad, stitchAndTile, boxes, textOverlay),
  ...nodesOf(adjustments, neighbourhoodFilters, colors, masks, composite),
  ...nodesOf(primitives, logicAndMaths, showText),
  ...nodesOf(stringNodes, regexNodes, datasetTexts).map(boundCpu),
  ...nodesOf(latents, latentBatches, latentArithmetic, transformLatents, schedulers, editSigmas),
  ...nodesOf(audioFiles, editAudio, combineAudio, makeVideo, cutVideo, saveVideo),
]

/** Classes that ComfyUI does not have. */
export const OWN_NODES: readonly EngineNode[] = [runModel]

/**
 * The classes whose results follow from their inputs and the bytes of their files alone: the same graph gives the same bytes again. A
 * class is added here by whoever has read its code. Left out on purpose:
 * - sound and video, and LTXVPreprocess: another program on the machine makes or reads the bytes
 * - SaveAnimatedWEBP and SaveImageAdvanced: encoders that work in several threads
 * - previews, comparisons and SaveImageWebsocket: they show, and what they show is not kept or has a name by chance
 * - folders of files, WebcamCapture and RunModel: what they read is not named by the graph
 * - nodes that users wrote: nobody here knows what they read
 */
const CLASSES = `
  LoadImage LoadImageMask LoadImageOutput Painter EmptyImage SaveImage SaveAnimatedPNG SaveSVGNode PreviewAny ImageScale
  ImageScaleBy ImageScaleToTotalPixels ImageScaleToMaxDimension ResizeImageMaskNode ResizeImagesByShorterEdge
  ResizeImagesByLongerEdge ResizeAndPadImage FluxKontextImageScale ImageCrop ImageCropV2 ImageCropToMask
  CenterCropImages RandomCropImages ImagePadForOutpaint ImageRotate ImageFlip ImageStitch SplitImageToTileList
  ImageMergeTileList GetImageSize TextOverlay CropByBBoxes DrawBBoxes
  ImageInvert ImageBlend ImageBlur ImageSharpen ImageQuantize ImageAddNoise AdjustBrightness AdjustContrast
  NormalizeImages ColorTransfer Canny Morphology ImageRGBToYUV ImageYUVToRGB ImageHistogram
  ImageBatch BatchImagesNode RepeatImageBatch ImageFromBatch RebatchImages ImageDeduplication ImageGrid ShuffleDataset
  MergeImageLists
  MaskToImage ImageToMask ImageColorToMask SolidMask InvertMask CropMask MaskComposite FeatherMask GrowMask
  ThresholdMask ImageCompositeMasked PorterDuffImageComposite SplitImageWithAlpha JoinImageWithAlpha BatchMasksNode
  PrimitiveString PrimitiveStringMultiline PrimitiveInt PrimitiveFloat PrimitiveBoolean PrimitiveBoundingBox
  StringConcatenate StringSubstring StringLength CaseConverter StringTrim StringReplace StringContains StringCompare
  RegexMatch RegexExtract RegexReplace JsonExtractString StringFormat ConvertDictionaryToString ConvertArrayToString
  SaveText TextToLowercase TextToUppercase TruncateText AddTextPrefix AddTextSuffix ReplaceText StripWhitespace
  MergeTextLists
  CreateList SeedNode ColorToRGBInt ComfyMathExpression ComfyNumberConvert ResolutionSelector ComfyNotNode ComfyAndNode
  ComfyOrNode ComfySwitchNode CustomCombo
  EmptyLatentImage EmptySD3LatentImage EmptyFlux2LatentImage LatentUpscale LatentUpscaleBy LatentFromBatch
  RepeatLatentBatch LatentRotate LatentFlip LatentCrop LatentComposite LatentCompositeMasked LatentBlend LatentAdd
  LatentSubtract LatentMultiply LatentInterpolate LatentBatch LatentBatchSeedBehavior LatentConcat LatentCut
  SetLatentNoiseMask RebatchLatents BatchLatentsNode SaveLatent LoadLatent
  KarrasScheduler ExponentialScheduler PolyexponentialScheduler VPScheduler LaplaceScheduler SplitSigmas
  SplitSigmasDenoise FlipSigmas SetFirstSigma ExtendIntermediateSigmas ManualSigmas
`

export const REPEATABLE: ReadonlySet<string> = new Set(CLASSES.trim().split(/\s+/))

/** Inputs that become names of files, in which a token stands for the time. */
export const NAME_INPUTS: readonly string[] = ['filename_prefix']
