import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.api.java.JavaRDD
import org.deeplearning4j.nn.conf.NeuralNetConfiguration
import org.deeplearning4j.nn.conf.layers.{DenseLayer, OutputLayer}
import org.deeplearning4j.nn.weights.WeightInit
import org.deeplearning4j.spark.api.RDDTrainingApproach
import org.deeplearning4j.spark.impl.multilayer.SparkDl4jMultiLayer
import org.deeplearning4j.spark.impl.paramavg.ParameterAveragingTrainingMaster
import org.nd4j.evaluation.classification.Evaluation
import org.nd4j.linalg.activations.Activation
import org.nd4j.linalg.dataset.DataSet
import org.nd4j.linalg.factory.Nd4j
import org.nd4j.linalg.learning.config.Adam
import org.nd4j.linalg.lossfunctions.LossFunctions.LossFunction

/** Digits: DATA MINIMUM-ACCURACY */
object Digits {
  val Pixels = 64
  val Classes = 10

  def example(line: String): DataSet = {
    val fields = line.split(",").map(_.toFloat)
    val label = Array.fill(Classes)(0f)
    label(fields(Pixels).toInt) = 1f
    new DataSet(Nd4j.create(Array(fields.take(Pixels).map(_ / 16))), Nd4j.create(Array(label)))
  }

  def main(arguments: Array[String]): Unit = {
    val Array(data, minimum) = arguments
    val context = new SparkContext(new SparkConf().setAppName("digits with DL4J"))
    val executors = context.getConf.getInt("spark.executor.instances", 2)
    def read(part: String) = context.textFile(s"$data/csv/$part").repartition(executors).map(example)
    val network = new NeuralNetConfiguration.Builder()
      .seed(0).updater(new Adam(0.01)).weightInit(WeightInit.XAVIER).list()
      .layer(new DenseLayer.Builder().nIn(Pixels).nOut(64).activation(Activation.RELU).build())
      .layer(new OutputLayer.Builder(LossFunction.MCXENT).nIn(64).nOut(Classes).activation(Activation.SOFTMAX).build())
      .build()
    val master = new ParameterAveragingTrainingMaster.Builder(1)
      .batchSizePerWorker(16).averagingFrequency(5).rddTrainingApproach(RDDTrainingApproach.Direct).workerPrefetchNumBatches(0).build()
    val training = new SparkDl4jMultiLayer(context, network, master)
    val train: JavaRDD[DataSet] = read("train").toJavaRDD()
    for (epoch <- 1 to 10) {
      training.fit(train)
      println(f"epoch $epoch%d: loss ${training.getScore}%.3f")
    }
    val held: JavaRDD[DataSet] = read("held-out").toJavaRDD()
    val accuracy = training.evaluate[Evaluation](held).accuracy()
    println(f"""RESULT {"accuracy": $accuracy%.4f, "executors": $executors}""")
    context.stop()
    if (accuracy < minimum.toDouble) sys.exit(1)
  }
}
