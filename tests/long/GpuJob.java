import java.io.File;
import java.nio.file.Files;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** An application master that asks for three containers with two GPUs each, and writes into a file how many it got, until that file is gone. Hadoop 3.1 and later. */
public class GpuJob {
    public static void main(String[] given) throws Exception {
        AMRMClient<AMRMClient.ContainerRequest> manager = AMRMClient.createAMRMClient();
        manager.init(new YarnConfiguration());
        manager.start();
        manager.registerApplicationMaster("", 0, "");
        for (int number = 0; number < 3; number++) {
            Resource size = Resource.newInstance(128, 1, Map.of("yarn.io/gpu", 2L));
            manager.addContainerRequest(new AMRMClient.ContainerRequest(size, null, null, Priority.newInstance(1)));
        }
        File file = new File(given[0]);
        int count = 0;
        do {
            count += manager.allocate(0.5f).getAllocatedContainers().size();
            Files.writeString(file.toPath(), "" + count);
            Thread.sleep(500);
        } while (file.exists());
        manager.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
    }
}
